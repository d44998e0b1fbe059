// The seconds of one statistic, as far as the page has read them.

import type { Schemas } from "../api";
import type { Sparse } from "./histogram";
import type { Layout } from "./layout";

/** The I/O of one value of the breakdown in one second. */
export interface Part {
  /** The value; empty without a breakdown. */
  value: string;
  count: number;
  bytes: number;
  numbers: Sparse | null;
}

/** The seconds from `from` up to but not including `to`. */
export interface Span {
  from: number;
  to: number;
}

const SECOND = 1e9;

export class Series {
  readonly seconds = new Map<number, Part[]>();
  readonly dropped = new Map<number, number>();
  /** The spans that the page has read, in order, without overlap. */
  private spans: Span[] = [];
  /** The daemon remembers nothing of this statistic before this second. */
  forgottenTo = 0;
  unit: Schemas["UnitWord"] | null = null;
  /** Whether the daemon has answered about this statistic. */
  accepted = false;
  /** The reason that the daemon does not answer about this statistic. */
  refused: string | null = null;
  reading = false;
  /** A number that grows with each change. */
  version = 0;

  /** A series whose columns have `step` seconds each. */
  constructor(
    readonly name: string,
    private readonly layout: Layout,
    readonly step = 1,
  ) {}

  /** Adds an answer about the past. */
  addColumns(said: Schemas["Columns"]): void {
    this.unit = said.unit ?? null;
    this.accepted = true;
    const [from, to, since] = [said.from_ns, said.to_ns, said.since_ns].map((ns) => Math.floor(ns / SECOND)) as [
      number,
      number,
      number,
    ];
    const places = this.placesOf(said.buckets);
    for (const column of said.columns) this.addColumn(column, places);
    if (since > from) this.forgottenTo = Math.max(this.forgottenTo, Math.min(since, to));
    if (since < to) this.addSpan({ from: Math.max(from, since), to });
    this.version += 1;
  }

  /** Adds a second that has just ended. */
  addSecond(column: Schemas["Column"], buckets: Schemas["Buckets"]): void {
    const at = Math.floor(column.start_ns / SECOND);
    this.addColumn(column, this.placesOf(buckets));
    this.addSpan({ from: at, to: at + 1 });
  }

  /** For each of an answer's buckets, its index in the layout. */
  private placesOf({ from }: Schemas["Buckets"]): number[] {
    return from.map((number) => this.layout.bucketAt(number));
  }

  private addColumn(column: Schemas["Column"], places: number[]): void {
    const at = Math.floor(column.start_ns / SECOND);
    this.seconds.set(
      at,
      column.parts.map((part) => ({
        value: part.value ?? "",
        count: part.count,
        bytes: part.bytes,
        numbers: part.numbers ? sparseOf(part.numbers, places) : null,
      })),
    );
    if (column.dropped > 0) this.dropped.set(at, column.dropped);
  }

  private addSpan(span: Span): void {
    this.version += 1;
    const before = this.spans.filter((one) => one.to < span.from);
    const after = this.spans.filter((one) => one.from > span.to);
    const touching = this.spans.filter((one) => one.to >= span.from && one.from <= span.to);
    const from = Math.min(span.from, ...touching.map((one) => one.from));
    const to = Math.max(span.to, ...touching.map((one) => one.to));
    this.spans = [...before, { from, to }, ...after];
  }

  has(second: number): boolean {
    return this.spans.some((span) => second >= span.from && second < span.to);
  }

  /** The latest unread part of a span; null if all of the span was read. */
  gap(from: number, to: number): Span | null {
    let end = to;
    for (const span of [...this.spans].reverse()) {
      if (span.from >= end) continue;
      if (span.to < end) return end > from ? { from: Math.max(from, span.to), to: end } : null;
      end = span.from;
    }
    return end > from ? { from, to: end } : null;
  }

  /** Forgets the seconds before `first`. */
  forget(first: number): void {
    for (const map of [this.seconds, this.dropped]) for (const second of map.keys()) if (second < first) map.delete(second);
    this.spans = this.spans.filter((span) => span.to > first);
  }
}

/** The series keeps the answer's own lists, because an hour has half a million buckets, and copying them takes longer
 *  than everything else. */
function sparseOf({ count, min, max, buckets, counts }: Schemas["Distribution"], places: number[]): Sparse {
  for (let at = 0; at < buckets.length; at += 1) buckets[at] = places[buckets[at]!]!;
  return { count, min, max, buckets, counts };
}

// The seconds that the page knows, with the wall clock's time of each, and the I/O of all devices in the last
// ones. A second without I/O is idle only if the daemon remembers it; every other one is unknown, and the page
// knows why.

import type { Schemas } from "../api";
import type { Layout } from "./layout";
import { type Sparse, sparse } from "./histogram";
import type { Series, Span } from "./series";

/** The I/O of one client with one operation on one device, in one second. */
export interface Cell {
  op: string;
  client: string;
  completed: number;
  bytes: number;
  latency: Sparse;
}

/** The page's knowledge of a second. */
export type Known = "known" | "before" | "missing" | "unread" | "after";

const SECOND = 1e9;
/** The seconds whose figures are kept. */
const KEPT = 30;
/** The most seconds that a view goes back; the daemon keeps as many. */
const REMEMBERED = 3_600;

export class Past {
  /** By device, then second. */
  private readonly devices = new Map<string, Map<number, Cell[]>>();
  /** The seconds that the daemon has reported, or can report. */
  readonly spans: Span[] = [];
  /** The difference of the wall clock and the daemon's clock, from a second on, in milliseconds. */
  private readonly offsets: { from: number; ms: number }[] = [];

  constructor(private readonly layout: Layout) {}

  /** The second after the last closed one. */
  get to(): number {
    return this.spans.at(-1)?.to ?? 0;
  }

  /** The first second that the page knows. */
  get from(): number {
    return this.spans[0]?.from ?? this.to;
  }

  /** A restarted daemon remembers nothing of the time before its start. */
  startAgain(): void {
    this.offsets.length = Math.min(this.offsets.length, 64);
    this.spans.push({ from: this.to, to: this.to });
    this.fresh = true;
  }

  private fresh = true;

  /** Adds an answer about all devices. */
  add(said: Schemas["Seconds"]): void {
    this.advance(said);
    for (const second of said.seconds) this.addSecond(second);
    this.forget();
  }

  private advance(said: Schemas["Seconds"]): void {
    const to = Math.floor(said.running.start_ns / SECOND);
    const since = Math.floor(said.since_ns / SECOND);
    let span = this.spans.at(-1);
    if (span === undefined || this.fresh) {
      if (span === undefined || since >= span.to) {
        if (span !== undefined && span.from === span.to) this.spans.pop();
        span = { from: since, to };
        this.spans.push(span);
      }
      this.fresh = false;
    } else if (since > span.to) {
      span = { from: since, to };
      this.spans.push(span);
    }
    span.to = Math.max(span.to, to);
  }

  private addSecond(second: Schemas["Second"]): void {
    const at = Math.floor(second.start_ns / SECOND);
    const cells = new Map<string, Cell[]>();
    for (const one of second.latencies) {
      const list = cells.get(one.disk) ?? [];
      cells.set(one.disk, list);
      list.push({
        op: one.op, client: one.client, completed: one.completed, bytes: one.bytes,
        latency: sparse(this.layout, one.latency),
      });
    }
    for (const [name, list] of cells) {
      const seconds = this.devices.get(name) ?? new Map<number, Cell[]>();
      this.devices.set(name, seconds.set(at, list));
    }
  }

  /** The I/O of a device in one of the last seconds. */
  cells(name: string, second: number): Cell[] {
    return this.devices.get(name)?.get(second) ?? [];
  }

  /** The page's knowledge of a second of a statistic. */
  knows(series: Series, second: number): Known {
    if (second >= this.to) return "after";
    if (second < this.from) return "before";
    if (!this.spans.some((span) => second >= span.from && second < span.to)) return "missing";
    if (series.has(second)) return "known";
    if (second >= series.forgottenTo) return "unread";
    // The page did not read these seconds before the earlier daemon ended.
    return second >= this.spans.at(-1)!.from ? "before" : "missing";
  }

  private forget(): void {
    const first = this.to - REMEMBERED;
    while (this.spans[0] && this.spans[0].to <= first) this.spans.shift();
    if (this.spans[0]) this.spans[0].from = Math.max(this.spans[0].from, first);
    for (const seconds of this.devices.values()) {
      for (const second of seconds.keys()) if (second < this.to - KEPT) seconds.delete(second);
    }
  }

  /** Notes the wall clock at a moment of the daemon's clock. Returns by how much it has jumped, in ms. */
  setClock(said: Schemas["Clock"]): number {
    const ms = (said.unix_ns - said.now_ns) / 1e6;
    const last = this.offsets.at(-1);
    if (last === undefined) {
      this.offsets.push({ from: 0, ms });
      return 0;
    }
    const jump = ms - last.ms;
    if (Math.abs(jump) < JUMP_MS) return 0;
    this.offsets.push({ from: said.now_ns / SECOND, ms });
    return jump;
  }

  /** The wall clock at a second of the daemon's clock, in ms since 1970: as the clock said then. */
  wall(second: number): number {
    const offset = this.offsets.findLast((one) => one.from <= second) ?? this.offsets[0];
    return second * 1_000 + (offset?.ms ?? 0);
  }
}

const JUMP_MS = 500;

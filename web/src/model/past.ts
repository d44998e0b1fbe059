// The seconds that the page knows, with the wall clock's time of each second. A second without I/O is idle only if
// the source remembers the second. A second that the source does not remember is unknown, and the page knows why.

import type { Schemas } from "../api";
import type { Series, Span } from "./series";

/** Whether the page knows a second, and if not, why. */
export type Known = "known" | "before" | "missing" | "unread" | "after";

/** A time in which the I/Os of a layer, or of all layers, were not recorded. */
export interface Gap extends Span {
  layer: string | null;
}

const SECOND = 1e9;
export class Past {
  /** The seconds that the daemon has reported, or can report. */
  readonly spans: Span[] = [];
  /** The differences between the wall clock's time and the daemon's time in milliseconds, each with the
   *  second from which it applies. */
  private readonly offsets: { from: number; ms: number }[] = [];

  /** The second after the last closed second. */
  get to(): number {
    return this.spans.at(-1)?.to ?? 0;
  }

  /** The first second that the page knows. */
  get from(): number {
    return this.spans[0]?.from ?? this.to;
  }

  /** Notes that the daemon was restarted: a daemon remembers nothing of the time before its start. */
  startAgain(): void {
    this.offsets.length = Math.min(this.offsets.length, 64);
    this.spans.push({ from: this.to, to: this.to });
    this.fresh = true;
  }

  private fresh = true;

  /** Notes that the source remembers the seconds from `since` up to but not including `to`. */
  advance(since: number, to: number): void {
    let span = this.spans.at(-1);
    if (span === undefined || this.fresh) {
      if (span === undefined || since >= span.to) {
        if (span !== undefined && span.from === span.to) this.spans.pop();
        span = { from: since, to };
        this.spans.push(span);
      }
      this.fresh = false;
    }
    span.to = Math.max(span.to, to);
  }

  /** The times in which only some layers were not recorded. */
  private apart: Gap[] = [];

  /** Notes that the source remembers the time from `since` to `to`, except the gaps. */
  replace(since: number, to: number, gaps: Gap[]): void {
    this.apart = gaps.filter((gap) => gap.layer !== null);
    this.spans.length = 0;
    let from = since;
    for (const gap of gaps.filter((gap) => gap.layer === null)) {
      if (gap.from > from) this.spans.push({ from, to: gap.from });
      from = Math.max(from, gap.to);
    }
    this.spans.push({ from, to });
  }

  /** Whether the page knows a second of a statistic, and if not, why. */
  knows(series: Series, second: number): Known {
    if (second >= this.to) return "after";
    if (second < this.from) return "before";
    if (!this.spans.some((span) => second >= span.from && second < span.to)) return "missing";
    if (this.apart.some((gap) => series.name.startsWith(`${gap.layer}.`) && second >= gap.from && second < gap.to))
      return "missing";
    if (series.has(second)) return "known";
    if (second >= series.forgottenTo) return "unread";
    // The present daemon has forgotten its early seconds of this statistic. Those of an earlier daemon are
    // missing: it ended before the page read them.
    return second >= this.spans.at(-1)!.from ? "before" : "missing";
  }

  /** Notes the wall clock at a moment of the daemon's clock. Returns by how many ms the wall clock has jumped. */
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

  /** The time that the wall clock showed at a second of the daemon's clock, in ms since 1970. */
  wall(second: number): number {
    const offset = this.offsets.findLast((one) => one.from <= second) ?? this.offsets[0];
    return second * 1_000 + (offset?.ms ?? 0);
  }
}

const JUMP_MS = 500;

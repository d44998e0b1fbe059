// Keeps the statistics of a worksheet up to date: one stream brings new seconds for all statistics, and the page
// reads the past in pieces, the newest piece first. If the stream has missed seconds, the page reads them like any
// other past.

import { type Api, Refused, type Schemas } from "../api";
import type { Layout } from "./layout";
import { Series, type Span } from "./series";

/** The page reads at most this many columns at once, so that it soon has something to draw. */
const PIECE = 900;
/** If the source has counted a piece within this time, the page reads the rest in one piece, and draws once more. */
const QUICK_MS = 250;
/** If the stream has not brought a second this many seconds after its end, the page asks for it. */
const LATE = 3;
/** The page keeps at most this many columns; a daemon keeps as many seconds. */
const KEPT = 3_600;

/** A piece of the past that the page has asked for: the seconds from `from` up to but not including `to`. */
interface Piece extends Span {
  answer: Promise<Schemas["Columns"]>;
}

export class Follower {
  /** The series, by the name of the statistic and the step. */
  private readonly series = new Map<string, Series>();
  private step = 1;
  private names: string[] = [];
  private from = 0;
  private to = 0;
  /** The names of the statistics in the stream, one per line. */
  private streamed = "";
  private stream: AbortController | null = null;
  /** The first second that the stream has brought; the page asks for earlier seconds. */
  private streamedFrom = 0;

  constructor(
    private readonly api: Api,
    private readonly layout: Layout,
    private readonly tell: () => void,
  ) {}

  /** The seconds of a statistic. */
  of(name: string): Series {
    const key = `${name} ${this.step}`;
    let series = this.series.get(key);
    if (series === undefined) {
      series = new Series(name, this.layout, this.step);
      this.series.set(key, series);
    }
    return series;
  }

  /** Follows these statistics from now on. The page shows them from second `from` on, in columns of `step`
   *  seconds. */
  follow(names: string[], from: number, step: number): void {
    this.names = [...new Set(names)];
    this.from = from;
    const isOther = this.step !== step;
    this.step = step;
    for (const [key, { name }] of this.series) if (!this.names.includes(name)) this.series.delete(key);
    this.fill();
    if (isOther) this.tell();
  }

  /** Notes that the seconds before `to` are over. */
  advance(to: number): void {
    this.to = to;
    for (const series of this.series.values()) series.forget(to - KEPT * series.step);
    this.fill();
  }

  /** Notes that the daemon was started again: the new daemon has no stream of this page. */
  startAgain(): void {
    this.stream?.abort();
    for (const series of this.series.values()) series.refused = null;
  }

  private fill(): void {
    if (this.to === 0) return;
    for (const name of this.names) void this.read(this.of(name));
    // The stream carries only seconds; the page reads longer columns when they are over.
    const accepted = this.step === 1 ? this.names.filter((name) => this.of(name).accepted) : [];
    if (accepted.length > 0 && accepted.join("\n") !== this.streamed) void this.watch(accepted);
  }

  /** Reads what the page lacks of a series, the newest piece first. */
  private async read(series: Series): Promise<void> {
    if (series.reading || series.refused !== null) return;
    let asked = this.ask(series, Infinity, PIECE);
    if (asked === null) return;
    series.reading = true;
    try {
      while (asked !== null) {
        const { from, to, answer }: Piece = asked;
        const begun = performance.now();
        const columns = await answer;
        // The daemon makes the next piece while the page adds and draws this one.
        asked = this.ask(series, from, performance.now() - begun < QUICK_MS ? KEPT : PIECE);
        series.addColumns(columns);
        series.reading = asked !== null;
        this.tell();
        // If the answer has brought nothing, the page asks again in the next second.
        const left = series.gap(Math.max(from, series.forgottenTo), to);
        if (left === null || left.from > from || left.to < to) this.fill();
      }
    } catch (error) {
      series.reading = false;
      // Without contact, the page asks again in the next second.
      if (error instanceof Refused && error.status < 500 && error.status !== 401)
        series.refused = [error.message, error.remedy].filter(Boolean).join(": ");
      this.tell();
    }
  }

  /** Asks for the newest piece before `before` that the page lacks, of at most `most` columns; null if the page lacks
   *  nothing. */
  private ask(series: Series, before: number, most: number): Piece | null {
    const { step } = series;
    const isStreamed = step === 1 && this.streamed.split("\n").includes(series.name);
    const end = Math.floor((isStreamed ? Math.min(this.to, Math.max(this.to - LATE, this.streamedFrom)) : this.to) / step) * step;
    // The daemon may forget a part of a column, and the page must not ask for that part again.
    const begin = Math.max(Math.floor(Math.max(this.from, this.to - KEPT * step) / step) * step, series.forgottenTo);
    // A user may remove a panel and add it again while the page reads its series.
    const isFollowed = this.names.includes(series.name) && step === this.step && this.of(series.name) === series;
    const gap = isFollowed ? series.gap(begin, Math.min(end, before)) : null;
    if (gap === null) return null;
    const from = Math.max(gap.from, gap.to - most * step);
    const query = new URLSearchParams({
      statistic: series.name,
      from_ns: `${from}000000000`,
      to_ns: `${gap.to}000000000`,
      step_ns: `${step}000000000`,
    });
    const answer = this.api.get<Schemas["Columns"]>(`/v1/statistics/columns?${query}`);
    // If the page fails at the answer before this one, it never awaits this one. A failure of this one must not count
    // as unhandled then.
    answer.catch(() => undefined);
    return { from, to: gap.to, answer };
  }

  private async watch(names: string[]): Promise<void> {
    this.stream?.abort();
    const stream = new AbortController();
    [this.stream, this.streamed, this.streamedFrom] = [stream, names.join("\n"), 0];
    try {
      const body = await this.api.open("/v1/statistics/watch", { statistics: names }, stream.signal);
      for await (const event of eventsOf(body)) this.take(names, event);
    } catch {
      // The stream has ended. The page reads the seconds that the stream did not bring like any other past.
    }
    if (this.stream === stream) [this.stream, this.streamed] = [null, ""];
  }

  private take(names: string[], event: string): void {
    const data = /^event: second\ndata: (.*)$/.exec(event)?.[1];
    if (data === undefined) return;
    const said = JSON.parse(data) as Schemas["WatchedSecond"];
    if (this.streamedFrom === 0) {
      this.streamedFrom = Math.floor(said.start_ns / 1e9);
      for (const name of names) void this.read(this.of(name));
    }
    said.columns.forEach((column, at) => this.series.get(`${names[at]!} 1`)?.addSecond(column, said.buckets));
  }
}

/** The events of a stream, each as its lines. */
async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + decoder.decode(value, { stream: true })).split("\n\n");
    rest = events.pop() ?? "";
    yield* events;
  }
}

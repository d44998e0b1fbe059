// What the page knows of the past: the I/O of each closed second, and which seconds it knows at all. A
// second without I/O is idle only if the daemon remembered it; all others are unknown, each for a reason.

import type { Schemas } from "../api";
import type { Layout } from "./layout";
import { type Sparse, sparse } from "./histogram";

/** The I/O of one client with one operation on one device, in one second. */
export interface Cell {
  op: string;
  client: string;
  completed: number;
  bytes: number;
  latency: Sparse;
}

/** What is known of a second of a device. */
export type Known = "known" | "before" | "missing" | "unread" | "after";

interface Device {
  /** The page has read all that the daemon remembers of it from this second on. */
  readFrom: number;
  reading: boolean;
  seconds: Map<number, Cell[]>;
  dropped: Map<number, number>;
}

/** Seconds, the last one excluded. */
interface Span {
  from: number;
  to: number;
}

const SECOND = 1e9;
/** The most seconds that the page keeps; the daemon keeps as many. */
const KEPT = 3_600;

export class Past {
  readonly devices = new Map<string, Device>();
  /** The seconds of which the daemon has told, or can tell. */
  readonly spans: Span[] = [];
  /** The difference of the wall clock and the daemon's clock, from a second on, in milliseconds. */
  private readonly offsets: { from: number; ms: number }[] = [];

  constructor(private readonly layout: Layout) {}

  /** The second after the last closed one. */
  get to(): number {
    return this.spans.at(-1)?.to ?? 0;
  }

  /** The first second that anything is known of. */
  get from(): number {
    return this.spans[0]?.from ?? this.to;
  }

  /** A daemon that has begun anew remembers nothing of the time before it. */
  startAgain(): void {
    this.offsets.length = Math.min(this.offsets.length, 64);
    this.spans.push({ from: this.to, to: this.to });
    this.fresh = true;
  }

  private fresh = true;

  /** Adds an answer about all devices, or about one whose whole past was asked for. */
  add(said: Schemas["Seconds"], only?: string): void {
    if (only === undefined) this.advance(said);
    for (const second of said.seconds) this.addSecond(second, only);
    if (only !== undefined) {
      const device = this.device(only);
      device.readFrom = Math.floor(said.since_ns / SECOND);
      device.reading = false;
    }
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

  private addSecond(second: Schemas["Second"], only?: string): void {
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
    for (const [name, list] of cells) this.device(name).seconds.set(at, list);
    if (second.dropped === 0) return;
    // Without a device the number is that of all devices.
    const dropped = only === undefined ? [...this.devices.values()] : [this.device(only)];
    for (const device of dropped) device.dropped.set(at, second.dropped);
  }

  device(name: string): Device {
    let device = this.devices.get(name);
    if (device === undefined) {
      device = { readFrom: this.readFrom, reading: false, seconds: new Map(), dropped: new Map() };
      this.devices.set(name, device);
    }
    return device;
  }

  /** From this second on, every answer was about all devices. */
  readFrom = 0;

  cells(name: string, second: number): Cell[] {
    return this.devices.get(name)?.seconds.get(second) ?? [];
  }

  knows(name: string, second: number): Known {
    if (second >= this.to) return "after";
    if (second < this.from) return "before";
    if (!this.spans.some((span) => second >= span.from && second < span.to)) return "missing";
    if (second >= this.device(name).readFrom) return "known";
    // An earlier daemon took with it what was not read in time.
    return second >= this.spans.at(-1)!.from ? "unread" : "missing";
  }

  private forget(): void {
    const first = this.to - KEPT;
    while (this.spans[0] && this.spans[0].to <= first) this.spans.shift();
    if (this.spans[0]) this.spans[0].from = Math.max(this.spans[0].from, first);
    for (const device of this.devices.values()) {
      for (const map of [device.seconds, device.dropped]) {
        for (const second of map.keys()) if (second < first) map.delete(second);
      }
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

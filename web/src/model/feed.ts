// The page's one connection to its source: once a second, soon after a second of the source's clock has ended, the
// feed asks for that second and, if the source is a daemon, for its status and rules. The feed also knows how good
// the contact is.

import { type Api, NoContact, Refused, type Schemas } from "../api";
import { countFromZero, lasting } from "../words";
import { Follower } from "./follower";
import { Layout } from "./layout";
import { Past } from "./past";
import { Series } from "./series";
import { LAYERS, type Layer } from "./statistic";

export type Status = Schemas["Status"];
export type Rule = Schemas["Rule"];

/** Whether the daemon answers. */
export type Contact =
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "lost"; since: number; retryAt: number; why: string }
  | { kind: "refused"; status: number; why: string; remedy: string | null };

/** An event that the lane of events shows. */
export interface Happening {
  second: number;
  /** The second at which the event ended; null while it lasts. */
  until: number | null;
  words: string;
  kind: "rule" | "note";
  key: string;
}

/** The page asks for a second this long after the second's end. */
const AFTER_MS = 60;
/** How many statuses are kept. */
const STATUSES = 60;
const RETRY_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000];
/** When the page opens, it reads this many past seconds of all devices, for the figures in the list of devices. */
const FIRST = 15;
/** The page keeps the figures of all devices for this many seconds. */
const DEVICES_KEPT = 30;

export type Source = Schemas["Source"];

export class Feed {
  contact: Contact = { kind: "connecting" };
  source: Source | null = null;
  /** The status of a daemon; null for any other source. */
  status: Status | null = null;
  rules: Rule[] = [];
  layout: Layout | null = null;
  past: Past | null = null;
  follower: Follower | null = null;
  words: Schemas["StatisticWords"] | null = null;
  /** The latencies of each device, by layer. */
  readonly devices = new Map<Layer, Series>();
  happenings: Happening[] = [];
  /** The statuses of the last minute, the newest last. */
  statuses: { second: number; status: Status }[] = [];
  /** Whether the daemon now serves a newer version of the page. */
  outdated = false;
  /** When the last answer came, by the browser's clock. */
  answeredAt = 0;
  private startedNs: number | null = null;
  private pageTag: string | null = null;
  /** The next second for which the feed reads the figures of all devices. */
  private next = 0;
  private failures = 0;
  private timer = 0;
  private busy = false;
  private readonly listeners = new Set<() => void>();

  constructor(readonly api: Api) {}

  start(): void {
    document.addEventListener("visibilitychange", () => document.hidden || this.soon(0));
    addEventListener("online", () => this.soon(0));
    void this.poll();
  }

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(): void {
    for (const listener of [...this.listeners]) listener();
  }

  /** Asks the source again, with another token. */
  useToken(token: string): void {
    this.api.token = token;
    this.contact = { kind: "connecting" };
    this.tell();
    this.soon(0);
  }

  /** Asks again after `ms` milliseconds, instead of at the planned time. */
  soon(ms: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.poll(), ms) as unknown as number;
  }

  private async poll(): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    let wait = 1_000;
    try {
      wait = await this.ask();
      this.failures = 0;
      this.contact = { kind: "live" };
      this.answeredAt = Date.now();
    } catch (error) {
      wait = this.failed(error);
    } finally {
      this.busy = false;
    }
    if (wait >= 0) this.soon(wait);
    this.tell();
  }

  private async ask(): Promise<number> {
    const clock = await this.api.get<Schemas["Clock"]>("/v1/clock");
    // A source that started at another time is another source, except a recording: its beginning moves when its
    // oldest files are deleted.
    const isOther = clock.started_ns !== this.startedNs && this.source?.kind !== "recording";
    if (this.source === null || isOther) await this.meet(clock);
    else if (this.source.kind !== "daemon") this.source = await this.api.get<Source>("/v1/source");
    const past = this.past!;
    const jump = this.source?.kind === "daemon" || this.source?.kind === "kernel" ? past.setClock(clock) : 0;
    if (jump !== 0)
      this.note(clock.now_ns / 1e9, `the clock went ${jump > 0 ? "forward" : "back"} ${lasting(Math.abs(jump) * 1e6)}`);
    await this.readDevices(clock);
    if (this.source?.kind === "daemon") await this.readDaemon(clock);
    this.follower!.advance(past.to);
    return 1_000 - (clock.now_ns % 1e9) / 1e6 + AFTER_MS;
  }

  /** Reads the figures of all devices for the seconds that have ended since the last answer, but for no more than
   *  the last `FIRST` seconds, and for none while the source is in trouble. */
  private async readDevices(clock: Schemas["Clock"]): Promise<void> {
    const past = this.past!;
    const [since, to] = [Math.floor(clock.started_ns / 1e9), Math.floor(clock.now_ns / 1e9)];
    const from = Math.max(this.next, to - FIRST, 0);
    const layers = LAYERS.filter((layer) => this.source!.devices.some((one) => one.layer === layer));
    if (to > from && this.source!.trouble === null) {
      await Promise.all(
        layers.map(async (layer) => {
          const query = new URLSearchParams({
            statistic: `${layer}.latency[device]`,
            from_ns: `${from}000000000`,
            to_ns: `${to}000000000`,
          });
          const said = await this.api.get<Schemas["Columns"]>(`/v1/statistics/columns?${query}`);
          let series = this.devices.get(layer);
          if (series === undefined) this.devices.set(layer, (series = new Series(said.statistic, this.layout!)));
          series.addColumns(said);
          series.forget(to - DEVICES_KEPT);
        }),
      );
    }
    this.next = to;
    if (this.source!.kind === "recording")
      past.replace(
        Math.floor(clock.started_ns / 1e9),
        to,
        this.source!.gaps.map((gap) => ({
          layer: gap.layer ?? null,
          from: Math.ceil(gap.from_ns / 1e9),
          to: Math.floor(gap.to_ns / 1e9),
        })),
      );
    else past.advance(Math.min(since, to), to);
  }

  private async readDaemon(clock: Schemas["Clock"]): Promise<void> {
    const [status, rules] = await Promise.all([this.api.get<Status>("/v1/status"), this.api.get<Rule[]>("/v1/rules")]);
    this.status = status;
    this.statuses = [...this.statuses, { second: clock.now_ns / 1e9, status }].slice(-STATUSES);
    this.noteRules(rules, clock.now_ns);
    this.rules = rules;
  }

  /** Reads the facts about a source that has just started, or that the page has just reached. */
  private async meet(clock: Schemas["Clock"]): Promise<void> {
    const again = this.startedNs !== null;
    const [said, source, words] = await Promise.all([
      this.api.get<Schemas["Layout"]>("/v1/layout"),
      this.api.get<Source>("/v1/source"),
      this.api.get<Schemas["StatisticWords"]>("/v1/statistics"),
    ]);
    if (this.layout?.name !== said.layout) {
      this.layout = new Layout(said);
      this.past = new Past();
      this.follower = new Follower(this.api, this.layout, () => this.tell());
    }
    [this.source, this.words] = [source, words];
    countFromZero(source.kind === "simulation");
    const tag = await pageTag();
    if (again) {
      this.past!.startAgain();
      this.statuses = [];
      this.devices.clear();
      this.follower!.startAgain();
      this.note(clock.started_ns / 1e9, "the daemon was started again");
      this.outdated ||= tag !== this.pageTag;
    }
    this.pageTag ??= tag;
    this.next = Math.floor(clock.started_ns / 1e9);
    this.startedNs = clock.started_ns;
  }

  private failed(error: unknown): number {
    if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
      this.contact = { kind: "refused", status: error.status, why: error.message, remedy: error.remedy };
      return -1;
    }
    const wait = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)]!;
    this.failures += 1;
    const since = this.contact.kind === "lost" ? this.contact.since : this.answeredAt || Date.now();
    const why = error instanceof NoContact ? "it does not answer" : error instanceof Error ? error.message : String(error);
    this.contact = { kind: "lost", since, retryAt: Date.now() + wait, why };
    if (!(error instanceof NoContact) && !(error instanceof Refused)) console.error(error);
    return wait;
  }

  /** Whether the source has come to its end: a recording always has. */
  get hasEnded(): boolean {
    return this.source?.ended_ns != null;
  }

  /** Whether a device belongs to the source. */
  has(name: string): boolean {
    return this.source?.devices.some((one) => one.name === name) ?? false;
  }

  /** The words for the metrics of a layer. */
  metricsOf(layer: Layer): Schemas["StatisticWord"][] {
    return this.words?.metrics.filter((one) => one.layers.includes(layer)) ?? [];
  }

  /** The words for the facts about the I/Os of a layer. */
  dimensionsOf(layer: Layer): Schemas["StatisticWord"][] {
    return this.words?.dimensions.filter((one) => one.layers.includes(layer)) ?? [];
  }

  /** The names of the devices of a layer. */
  namesOf(layer: Layer): string[] {
    return this.source?.devices.filter((one) => one.layer === layer).map((one) => one.name) ?? [];
  }

  private note(second: number, words: string): void {
    this.happenings.push({ second, until: second, words, kind: "note", key: `note ${second} ${words}` });
    this.happenings = this.happenings.slice(-200);
  }

  /** Notes which rules were armed and which have ended since the last answer. */
  private noteRules(rules: Rule[], nowNs: number): void {
    const armed = new Map(rules.filter(isInForce).map((rule) => [keyOf(rule), rule]));
    for (const one of this.happenings) {
      if (one.kind === "rule" && one.until === null && !armed.has(one.key)) one.until = nowNs / 1e9;
      armed.delete(one.key);
    }
    for (const [key, rule] of armed) {
      const second = (nowNs - rule.age_ns) / 1e9;
      const words = `rule ${rule.id} · ${rule.disk} ${rule.rule}`;
      this.happenings.push({ second, until: null, words, kind: "rule", key });
    }
    this.happenings = this.happenings.slice(-200);
  }
}

/** Whether a rule applies now, or rests between the turns of its cycle. */
export function isInForce(rule: Rule): boolean {
  return rule.state === "active" || rule.state === "resting";
}

function keyOf(rule: Rule): string {
  return `${rule.id} ${rule.disk} ${rule.rule}`;
}

/** The ETag of the page that the daemon serves now. */
async function pageTag(): Promise<string | null> {
  const answer = await fetch("/page.js", { method: "HEAD", cache: "no-store" }).catch(() => null);
  return answer?.headers.get("ETag") ?? null;
}

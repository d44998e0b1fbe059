// The page's one connection to its daemon: once a second, soon after a second of the daemon's clock has
// ended, it asks for that second, the status and the rules. It says how good the contact is.

import { type Api, NoContact, Refused, type Schemas } from "../api";
import { lasting } from "../words";
import { Follower } from "./follower";
import { Layout } from "./layout";
import { Past } from "./past";

export type Status = Schemas["Status"];
export type Rule = Schemas["Rule"];

/** Whether the daemon answers. */
export type Contact =
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "lost"; since: number; retryAt: number; why: string }
  | { kind: "refused"; status: number; why: string; remedy: string | null };

/** Something that happened, for the lane of events. */
export interface Happening {
  second: number;
  /** Null while it lasts. */
  until: number | null;
  words: string;
  kind: "rule" | "note";
  key: string;
}

/** A second is asked for this long after its end. */
const AFTER_MS = 60;
/** How many statuses are kept. */
const STATUSES = 60;
const RETRY_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000];
/** How much of the past of all devices is read at the start, for their figures. */
const FIRST_NS = 15e9;

export class Feed {
  contact: Contact = { kind: "connecting" };
  status: Status | null = null;
  rules: Rule[] = [];
  layout: Layout | null = null;
  past: Past | null = null;
  follower: Follower | null = null;
  words: Schemas["StatisticWords"] | null = null;
  happenings: Happening[] = [];
  /** The status of the last minute, the newest last. */
  statuses: { second: number; status: Status }[] = [];
  /** The daemon has another page than this one. */
  outdated = false;
  /** When the last answer came, by the browser's clock. */
  answeredAt = 0;
  private startedNs: number | null = null;
  private pageTag: string | null = null;
  private next: number | null = null;
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

  /** Tries again with another token. */
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
    if (clock.started_ns !== this.startedNs) await this.meet(clock);
    const past = this.past!;
    const jump = past.setClock(clock);
    if (jump !== 0) this.note(clock.now_ns / 1e9, `the clock went ${jump > 0 ? "forward" : "back"} ${lasting(Math.abs(jump) * 1e6)}`);
    const after = this.next ?? Math.max(0, clock.now_ns - FIRST_NS);
    const [seconds, status, rules] = await Promise.all([
      this.api.get<Schemas["Seconds"]>(`/v1/seconds?after_ns=${Math.floor(after)}`),
      this.api.get<Status>("/v1/status"),
      this.api.get<Rule[]>("/v1/rules"),
    ]);
    past.add(seconds);
    this.follower!.advance(past.to);
    // Seconds without I/O are not in the answer, but they are over.
    this.next = Math.max(seconds.running.start_ns - 1e9, 0);
    this.status = status;
    this.statuses = [...this.statuses, { second: clock.now_ns / 1e9, status }].slice(-STATUSES);
    this.noteRules(rules, clock.now_ns);
    this.rules = rules;
    return 1_000 - (seconds.now_ns % 1e9) / 1e6 + AFTER_MS;
  }

  /** Reads the facts about a daemon that has just started, or that the page has just reached. */
  private async meet(clock: Schemas["Clock"]): Promise<void> {
    const again = this.startedNs !== null;
    const said = await this.api.get<Schemas["Layout"]>("/v1/layout");
    if (this.layout?.name !== said.layout) {
      this.layout = new Layout(said);
      this.past = new Past(this.layout);
      this.follower = new Follower(this.api, this.layout, () => this.tell());
    }
    this.words = await this.api.get<Schemas["StatisticWords"]>("/v1/statistics");
    const tag = await pageTag();
    if (again) {
      this.past!.startAgain();
      this.statuses = [];
      this.follower!.startAgain();
      this.note(clock.started_ns / 1e9, "the daemon was started again");
      this.outdated ||= tag !== this.pageTag;
    }
    this.pageTag ??= tag;
    this.next = again ? clock.started_ns : null;
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

  private note(second: number, words: string): void {
    this.happenings.push({ second, until: second, words, kind: "note", key: `note ${second} ${words}` });
    this.happenings = this.happenings.slice(-200);
  }

  /** Notes which rules were armed and which have ended since the last answer. */
  private noteRules(rules: Rule[], nowNs: number): void {
    const armed = new Map(rules.filter((rule) => rule.state === "active").map((rule) => [keyOf(rule), rule]));
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

function keyOf(rule: Rule): string {
  return `${rule.id} ${rule.disk} ${rule.rule}`;
}

/** The tag of the page that the daemon has now. */
async function pageTag(): Promise<string | null> {
  const answer = await fetch("/page.js", { method: "HEAD", cache: "no-store" }).catch(() => null);
  return answer?.headers.get("ETag") ?? null;
}

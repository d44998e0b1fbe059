// Numbers and times as people read them. An unknown value is a dash, never a zero.

export const UNKNOWN = "–";
const THIN = "\u2009";

/** A latency with three significant digits: `142 µs`, `9.41 ms`, `95.0 ms`. */
export function latency(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return UNKNOWN;
  for (const [unit, size] of [
    ["s", 1e9],
    ["ms", 1e6],
    ["µs", 1e3],
  ] as const) {
    if (ns >= size * 0.9995) return `${three(ns / size)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

/** A latency that is a round number, as an axis shows it: `10 ms`. */
export function roundLatency(ns: number): string {
  for (const [unit, size] of [
    ["s", 1e9],
    ["ms", 1e6],
    ["µs", 1e3],
  ] as const) {
    if (ns >= size) return `${trim(ns / size)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

function trim(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** A number with three significant digits, or as a whole number if it has more digits before the point. */
export function three(value: number): string {
  if (value >= 1_000) return thousands(Math.round(value));
  if (value >= 99.95) return value.toFixed(0);
  if (value >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
}

/** A count with a thin space after every three digits. */
export function thousands(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, THIN);
}

/** A rate per second. */
export function rate(value: number): string {
  return value >= 99.95 || value === 0 ? thousands(value) : value.toFixed(1);
}

/** A share, as a percentage. */
export function percent(share: number): string {
  if (!Number.isFinite(share)) return UNKNOWN;
  const value = share * 100;
  return `${value >= 99.95 || value === 0 ? value.toFixed(0) : value.toFixed(1)} %`;
}

/** A size in powers of 1024: `64 M`. */
export function size(bytes: number): string {
  for (const [unit, one] of [
    ["T", 2 ** 40],
    ["G", 2 ** 30],
    ["M", 2 ** 20],
    ["K", 2 ** 10],
  ] as const) {
    if (bytes >= one) return `${trimTo(bytes / one)} ${unit}`;
  }
  return `${bytes} B`;
}

function trimTo(value: number): string {
  const text = three(value);
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A number in the unit of a statistic. */
export function amount(unit: string | null, value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  return unit === "ns" ? latency(value) : unit === "bytes" ? size(value) : thousands(value);
}

/** A round number in the unit of a statistic, as an axis shows it. */
export function roundAmount(unit: string | null, value: number): string {
  return unit === "ns" ? roundLatency(value) : amount(unit, value);
}

/** How long something took or lasts: `12 s`, `3 min 5 s`. */
export function lasting(ns: number): string {
  const seconds = Math.round(ns / 1e9);
  if (seconds < 1) return latency(ns);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return join(Math.floor(seconds / 60), "min", seconds % 60, "s");
  return join(Math.floor(seconds / 3_600), "h", Math.floor((seconds % 3_600) / 60), "min");
}

function join(large: number, unit: string, small: number, of: string): string {
  return small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${of}`;
}

/** A count with its noun, in the singular or the plural. */
export function plural(count: number, noun: string): string {
  return `${thousands(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Whether the page shows times of a simulation, which begin at 0 and have no time zone. */
let fromZero = false;

export function countFromZero(is: boolean): void {
  fromZero = is;
}

/** The offset of the time zone in which the page shows times, in minutes, as in `Date`. */
export function zoneOffset(ms: number): number {
  return fromZero ? 0 : new Date(ms).getTimezoneOffset();
}

/** The time of day for a time of the wall clock; in a simulation, the time since its beginning. */
export function clock(ms: number): string {
  const seconds = Math.floor(ms / 1_000) - zoneOffset(ms) * 60;
  if (fromZero && seconds < 0) return UNKNOWN;
  const hours = fromZero ? Math.floor(seconds / 3_600) : Math.floor(seconds / 3_600) % 24;
  return [hours, Math.floor(seconds / 60) % 60, seconds % 60].map((part) => String(part).padStart(2, "0")).join(":");
}

/** The time of day, and also the date if the two times are on different days. */
export function moment(ms: number, other: number): string {
  const days = [ms, other].map((one) => new Date(one - zoneOffset(one) * 60_000).toISOString().slice(0, 10));
  return days[0] === days[1] || fromZero ? clock(ms) : `${days[0]} ${clock(ms)}`;
}

/** The name of the browser's time zone. */
export function zone(): string {
  if (fromZero) return "simulated";
  const parts = new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(new Date());
  return parts.find((one) => one.type === "timeZoneName")?.value ?? "";
}

/** A name, shortened in the middle so that both ends stay visible. */
export function cut(name: string, most: number): string {
  if (name.length <= most) return name;
  const head = Math.ceil((most - 1) / 2);
  return `${name.slice(0, head)}…${name.slice(name.length - (most - 1 - head))}`;
}

/** The text with a capital letter at its beginning. */
export function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

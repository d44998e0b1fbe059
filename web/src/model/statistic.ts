// Statistics as they are written in addresses and on the command line: `disk.latency[op=write][client]`.

export const OPS = ["read", "write", "flush", "trim", "zero", "cache"];
/** The operations to which a rule on a disk can apply, in the words of `-T`, the usual choice first. On
 *  a path disk these are the types of calls that its store names. */
export function opsOf(store: string): string[] {
  if (!store.startsWith("path:")) return ["read,write", ...OPS, "all"];
  const types = /,types=([a-z,]+)$/.exec(store)?.[1]?.split(",") ?? ["sync"];
  return types.length === 1 ? types : ["all", ...types];
}

/** The layers; `kernel` has the kernel's disks in a recording that has a daemon's disks, too. */
export const LAYERS = ["disk", "volume", "kernel"] as const;
export type Layer = (typeof LAYERS)[number];

/** The words for the devices of a layer in the middle of a sentence. */
export const DEVICES: Record<Layer, string> = { disk: "disks", volume: "volumes", kernel: "the kernel's disks" };
const NOUNS: Record<Layer, string> = { disk: "Disk", volume: "Volume", kernel: "Kernel disk" };

function isLayer(word: string): word is Layer {
  return LAYERS.some((one) => one === word);
}

export interface Statistic {
  layer: Layer;
  metric: string;
  /** The conditions, each as it stands in its brackets: `op=write`. */
  conditions: string[];
  by: string | null;
}

export function written({ layer, metric, conditions, by }: Statistic): string {
  return `${layer}.${metric}${conditions.map((one) => `[${one}]`).join("")}${by === null ? "" : `[${by}]`}`;
}

/** Reads a statistic. If the text is not of a statistic's form, returns a sentence that explains why. The daemon checks
 *  the words for metrics and facts. */
export function readStatistic(text: string): Statistic | string {
  const [, layer, metric, brackets] = /^(\w+)\.(\w+)((?:\[[^\]]*\])*)$/.exec(text) ?? [];
  if (layer === undefined || metric === undefined || brackets === undefined)
    return "It is not of the form disk.latency[op=write][client].";
  if (!isLayer(layer)) return `There is no layer ${layer}; there are disk, volume and kernel.`;
  const parts = [...brackets.matchAll(/\[([^\]]*)\]/g)].map(([, inside]) => inside ?? "");
  const isCondition = (part: string): boolean => /[=<>!]/.test(part);
  const by = parts.filter((part) => !isCondition(part));
  if (by.length > 1) return `It is broken down by ${by.join(" and by ")}; a statistic has one breakdown.`;
  return { layer, metric, conditions: parts.filter(isCondition), by: by[0] ?? null };
}

/** Whether the metric is a number that each I/O has, so that the page draws a heat map. */
export function isOfNumbers(metric: string): boolean {
  return !["ops", "bytes", "errors"].includes(metric);
}

/** The name of the device that the statistic is about; null if it is not about a single device. */
export function deviceOf(statistic: Statistic): string | null {
  return statistic.conditions.find((one) => one.startsWith("device="))?.slice("device=".length) ?? null;
}

/** The statistic without this condition. */
export function without(statistic: Statistic, condition: string): Statistic {
  return { ...statistic, conditions: statistic.conditions.filter((one) => one !== condition) };
}

/** The statistic with one more condition. A condition `word=…` replaces an earlier one on the same dimension. */
export function withCondition(statistic: Statistic, condition: string): Statistic {
  const [, word, sign] = /^(\w+)(>=|<=|!=|=|<|>)/.exec(condition) ?? [];
  const others = statistic.conditions.filter((one) => sign !== "=" || !one.startsWith(`${word}=`));
  return { ...statistic, conditions: [...others.filter((one) => one !== condition), condition] };
}

/** The condition that selects a value of a breakdown; null if no condition does. */
export function conditionOf(by: string, value: string): string | null {
  if (["other", "unknown", "none"].includes(value) || /[\][*?\\]/.test(value)) return null;
  if (value.startsWith("<")) return `${by}${value}`;
  const [, from, to] = /^(\d[\w.]*)-(\d[\w.]*)$/.exec(value) ?? [];
  return from !== undefined && NUMBERS.has(by) ? `${by}=${from}..${to}` : `${by}=${value}`;
}

/** Dimensions whose values are ranges of numbers. */
const NUMBERS = new Set([
  "size",
  "offset",
  "latency",
  "total",
  "recv",
  "throttle",
  "queue",
  "suspend",
  "store",
  "hold",
  "late",
  "reply",
]);

/** The subject of the sentence for a statistic. */
export function subjectOf({ layer, metric }: Statistic): string {
  const noun = NOUNS[layer];
  if (metric === "ops") return `${noun} operations`;
  if (metric === "bytes") return `${noun} bytes`;
  if (metric === "errors") return `Failed ${noun.toLowerCase()} operations`;
  return `${noun} operations by ${metric}`;
}

const PHRASES: Record<string, string> = {
  device: "on",
  op: "of type",
  client: "of client",
  rule: "under rule",
  lane: "on lane",
  error: "with error",
};
const SIGNS: Record<string, string> = { ">=": "≥", "<=": "≤", "!=": "≠", "=": "", "<": "<", ">": ">" };

/** A condition in words: the words before its value, and the value. */
export function phraseOf(condition: string): { before: string; value: string } {
  const [, word = "", sign = "", value = ""] = /^(\w+)(>=|<=|!=|=|<|>)(.*)$/.exec(condition) ?? [];
  const phrase = PHRASES[word];
  if (phrase && sign === "=") return { before: phrase, value };
  return { before: phrase && sign === "!=" ? `not ${phrase}` : `${word} ${SIGNS[sign]}`.trim(), value };
}

export function sentence(statistic: Statistic): string {
  const conditions = statistic.conditions.map(phraseOf).map(({ before, value }) => ` ${before} ${value}`);
  const by = statistic.by === null ? "" : `, broken down by ${nameOf(statistic.by)}`;
  return `${subjectOf(statistic)}${conditions.join(",")}${by}`;
}

/** A dimension in the words of the page. */
export function nameOf(dimension: string): string {
  return dimension === "op" ? "type" : dimension;
}

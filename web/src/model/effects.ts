// The effects that a rule can have, with the options of each. The form that arms a rule is made from this table.

import { opsOf } from "./statistic";

/** An option of an effect. */
interface Field {
  name: string;
  /** The value when the form opens. */
  value: string;
  /** The values that the form offers; without them, the user types. */
  choices?: string[];
  hint?: string;
}

export interface Effect {
  name: string;
  fields: Field[];
  /** The operations that the effect can apply to, in the words of `-T`, the usual choice first; without them, all. */
  ops?: string[];
  /** Whether the engine can say before which latencies to expect. */
  delays?: true;
  /** The effect in the words of a rule, from the values of its fields. */
  words: (...values: string[]) => string;
}

const TIMES = "20ms, 20ms~5ms, uniform=1ms..9ms, p50=1ms,p99=30ms";

export const EFFECTS: Effect[] = [
  {
    name: "delay",
    delays: true,
    fields: [
      { name: "Takes", value: "20ms", hint: TIMES },
      { name: "Lanes", value: "1", hint: "empty: no I/O waits for another" },
    ],
    words: (takes, lanes) => `-D ${takes}${lanes && `:${lanes}`}`,
  },
  {
    name: "error",
    fields: [
      { name: "Error", value: "EIO", hint: "EIO, ENOSPC, EPERM, or the number of an errno" },
      { name: "After", value: "", hint: `empty: at once; ${TIMES}` },
    ],
    words: (error, after) => `${after && `-D ${after} `}-e ${error}`,
  },
  { name: "hang", fields: [], words: () => "--hang" },
  {
    name: "bandwidth",
    delays: true,
    fields: [{ name: "Bytes per second", value: "100M", hint: "100M, 1G" }],
    words: (rate) => `--bandwidth ${rate}`,
  },
  { name: "drop writes", fields: [], ops: ["write,trim,zero", "write", "trim", "zero"], words: () => "--drop" },
  { name: "lie about flushes", fields: [], ops: ["flush,fua", "flush", "fua"], words: () => "--lie" },
  {
    name: "tear writes",
    fields: [{ name: "Unit", value: "512", choices: ["512", "4096"] }],
    ops: ["write"],
    words: (unit) => `--torn ${unit}`,
  },
  {
    name: "corrupt",
    fields: [
      { name: "Kind", value: "flip", choices: ["flip", "zero", "random", "misdirect"] },
      { name: "Bytes", value: "", hint: "empty: a bit for flip, else 512; a power of two" },
    ],
    ops: ["read,write", "read", "write"],
    words: (kind, bytes) => `--corrupt ${kind}${bytes && `:${bytes}`}`,
  },
  { name: "short calls", fields: [], ops: ["read,write", "read", "write"], words: () => "--short" },
];

/** The operations that a rule with this effect can apply to on a disk with this store. */
export function opsFor(effect: Effect, store: string): string[] {
  return effect.ops ?? opsOf(store);
}

// Questions as they are written in addresses and on the command line: `disk.ops[device=c1t3d0][latency]`.

import type { Question } from "../heatmap/grid";

export const OPS = ["read", "write", "flush", "trim", "zero", "cache"];

export function written(question: Question): string {
  const predicate = (name: string, value: string | null): string => (value === null ? "" : `[${name}=${value}]`);
  return `${question.layer}.ops${predicate("device", question.device)}${predicate("op", question.op)}${predicate("client", question.client)}[latency]`;
}

/** Reads a question. A text that is none gives the sentence that explains it. */
export function readQuestion(text: string): Question | string {
  const [, layer, brackets] = /^(\w+)\.ops((?:\[[^\]]*\])*)$/.exec(text) ?? [];
  if (layer === undefined || brackets === undefined) return `“${text}” is not of the form disk.ops[device=NAME][latency].`;
  if (layer !== "disk" && layer !== "volume") return `There is no layer ${layer}; there are disk and volume.`;
  const question: Question = { layer, device: "", op: null, client: null };
  for (const [, inside] of brackets.matchAll(/\[([^\]]*)\]/g)) {
    const wrong = addBracket(question, inside ?? "");
    if (wrong) return wrong;
  }
  return question.device === "" ? `“${text}” names no device.` : question;
}

function addBracket(question: Question, inside: string): string | null {
  const [name, ...rest] = inside.split("=");
  const value = rest.join("=");
  if (inside === "latency") return null;
  if (name === "device") question.device = value;
  else if (name === "client") question.client = value;
  else if (name === "op" && OPS.includes(value)) question.op = value;
  else if (name === "op") return `There is no operation ${value}; there are ${OPS.join(", ")}.`;
  else return `There is no dimension ${name}; there are device, op, client and latency.`;
  return null;
}

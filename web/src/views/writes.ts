// The mean size of clients' writes to a volume, in bytes and in blocks.

import type { Schemas } from "../api";
import type { Feed } from "../model/feed";

/** Rates cover this many of the last seconds. */
export const LATELY = 10;
/** The page marks volumes whose writes become this many blocks or more. */
export const MUCH = 4;

export interface Writes {
  /** The mean size of a write, in bytes. */
  bytes: number;
  /** The mean size of a write, in blocks of the volume. */
  blocks: number;
  block: number;
}

/** The writes of a volume in the last seconds that the page has seen; null without writes. */
export function writesOf(feed: Feed, name: string): Writes | null {
  const [first, last] = [feed.statuses.slice(-LATELY - 1)[0], feed.statuses.at(-1)];
  const [before, now] = [first, last].map((one) => one?.status.volumes.find((volume) => volume.name === name));
  if (!now) return null;
  const of = (volume: Schemas["Volume"] | undefined) => volume?.ops.find((one) => one.op === "write");
  const count = (of(now)?.completed ?? 0) - (of(before)?.completed ?? 0);
  if (count <= 0) return null;
  const bytes = ((of(now)?.bytes ?? 0) - (of(before)?.bytes ?? 0)) / count;
  return { bytes, blocks: bytes / now.block_bytes, block: now.block_bytes };
}

/** How many blocks a client's write to a volume becomes on average; null if these are fewer than `MUCH`. */
export function blocksOf(feed: Feed, name: string): number | null {
  const blocks = writesOf(feed, name)?.blocks ?? 0;
  return blocks >= MUCH ? blocks : null;
}

// Histograms as the daemon sends them, their sums, and percentiles that equal the command line's.

import type { Layout } from "./layout";

/** The occupied buckets of a histogram. */
export interface Sparse {
  count: number;
  min: number;
  max: number;
  buckets: number[];
  counts: number[];
}

/** A sum of histograms. */
export class Histogram {
  readonly counts: Float64Array;
  count = 0;
  min = Infinity;
  max = 0;

  constructor(readonly layout: Layout) {
    this.counts = new Float64Array(layout.buckets);
  }

  add(other: Sparse): void {
    if (other.count === 0) return;
    this.count += other.count;
    this.min = Math.min(this.min, other.min);
    this.max = Math.max(this.max, other.max);
    for (let at = 0; at < other.buckets.length; at += 1) this.counts[other.buckets[at]!]! += other.counts[at]!;
  }

  record(ns: number): void {
    this.count += 1;
    this.min = Math.min(this.min, ns);
    this.max = Math.max(this.max, ns);
    this.counts[this.layout.bucketAt(ns)]! += 1;
  }

  /** The percentile at `ppm` millionths; null unless at least one I/O is expected to lie above it, as on the
   *  command line. */
  percentile(ppm: number): number | null {
    if (this.count < Math.floor(1_000_000 / (1_000_000 - ppm))) return null;
    const rank = Math.ceil((this.count * ppm) / 1_000_000);
    let seen = 0;
    for (let bucket = 0; bucket < this.counts.length; bucket += 1) {
      seen += this.counts[bucket]!;
      if (this.counts[bucket]! > 0 && seen >= rank) return this.middle(bucket);
    }
    return null;
  }

  private middle(bucket: number): number {
    const from = this.layout.from[bucket]!;
    const to = this.layout.to(bucket);
    const middle = to === Infinity ? from : Math.floor((from + to) / 2);
    return Math.min(Math.max(middle, this.min), this.max);
  }
}

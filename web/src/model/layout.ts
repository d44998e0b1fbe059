// The buckets of latency histograms, as the daemon names them, and the rows of a heat map: the rows are those
// of `dashpot heatmap`, ten for each factor of ten, named after the preferred numbers R10. A row begins with
// the bucket that contains its number, so a row consists of whole buckets.

import type { Schemas } from "../api";

const NUMBERS = [100, 125, 160, 200, 250, 315, 400, 500, 630, 800];
export const PER_DECADE = NUMBERS.length;
/** The number of rows. The last row, named 4,000 s, begins with the last bucket, at 2,199 s, and has all longer
 *  latencies. The two rows before it begin there, too, so they are empty. */
export const ROWS = 127;

export class Layout {
  readonly name: string;
  /** The smallest latency of each bucket. */
  readonly from: number[];
  /** The row of each bucket. */
  readonly rowOf: Uint8Array;
  /** The smallest latency of each row. */
  readonly rowFrom: number[];
  private readonly index = new Map<number, number>();

  constructor(said: Schemas["Layout"]) {
    this.name = said.layout;
    this.from = said.from_ns;
    this.from.forEach((ns, at) => this.index.set(ns, at));
    this.rowFrom = Array.from({ length: ROWS }, (_, row) => (row === 0 ? 0 : this.from[this.bucketAt(rowNumber(row))]!));
    this.rowOf = new Uint8Array(this.from.length);
    let row = 0;
    this.from.forEach((ns, at) => {
      while (row + 1 < ROWS && this.rowFrom[row + 1]! <= ns) row += 1;
      this.rowOf[at] = row;
    });
  }

  /** The bucket that contains a latency. */
  bucketAt(ns: number): number {
    const exact = this.index.get(ns);
    if (exact !== undefined) return exact;
    let low = 0;
    let high = this.from.length;
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (this.from[middle]! <= ns) low = middle;
      else high = middle;
    }
    return low;
  }

  /** The largest latency of a bucket. */
  to(bucket: number): number {
    return (this.from[bucket + 1] ?? Infinity) - 1;
  }

  get buckets(): number {
    return this.from.length;
  }
}

/** The latency that names a row. */
export function rowNumber(row: number): number {
  return Math.floor((NUMBERS[row % PER_DECADE]! * 10 ** Math.floor(row / PER_DECADE)) / 100);
}

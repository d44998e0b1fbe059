// The I/Os in view, as a table of columns and values, and for a statistic of numbers also as a grid of cells.

import { Histogram, type Sparse } from "../model/histogram";
import { type Layout, PER_DECADE, ROWS, rowNumber } from "../model/layout";
import type { Known, Past } from "../model/past";
import type { Part, Series } from "../model/series";

/** The seconds in view, from `from` up to but not including `to`, and the number of seconds in a column. */
export interface View {
  from: number;
  to: number;
  step: number;
}

/** The cell under the page's only cursor. */
export interface Cursor {
  second: number;
  panel: number;
  row: number;
}

export type YScale = "log" | "linear";

/** The range of numbers to which the axis is zoomed; the end is not included, and is null if there is no
 *  upper bound. */
export interface Zoom {
  from: number;
  to: number | null;
}

/** The rows in view, from the bottom up. A number below the first row counts in the first row, and a number
 *  above the last row counts in the last row. With a zoom, such numbers are in no row. */
export interface Rows {
  scale: YScale;
  zoomed: boolean;
  /** The smallest number of each row, and the end of the last row. */
  edges: number[];
  /** The row of each bucket; NOWHERE if the bucket is not in view. */
  of: Uint16Array;
}

export interface Column {
  from: number;
  known: Known;
  /** Number of I/Os, or of bytes. */
  count: number;
  dropped: number;
}

/** The I/Os by column, and by value of the breakdown. */
export interface Table {
  view: View;
  columns: Column[];
  /** For each value, the I/Os (or bytes) of each column. */
  values: Map<string, Float64Array>;
}

export interface Grid extends Table {
  rows: Rows;
  /** The I/Os of each cell, ordered by column, then by row. */
  counts: Float64Array;
  /** For each highlighted value, how many of each cell's I/Os have this value. */
  parts: Float64Array[];
  /** For each column, the number of I/Os below the first row. */
  under: Float64Array;
  /** The largest number of I/Os in a cell. */
  most: number;
  all: Histogram;
}

/** Sums the seconds in view; `of` gives the amount that a part adds to a sum. */
export function tabulate(past: Past, series: Series, view: View, of: (part: Part) => number): Table {
  const width = Math.max(1, Math.ceil((view.to - view.from) / view.step));
  const table: Table = { view, columns: [], values: new Map() };
  for (let at = 0; at < width; at += 1) {
    const from = view.from + at * view.step;
    const column: Column = { from, known: "known", count: 0, dropped: 0 };
    for (let second = from; second < Math.min(from + view.step, view.to); second += series.step) {
      const known = past.knows(series, second);
      if (known !== "known") column.known = known;
      column.dropped += series.dropped.get(second) ?? 0;
      for (const part of series.seconds.get(second) ?? []) {
        column.count += of(part);
        let value = table.values.get(part.value);
        if (value === undefined) table.values.set(part.value, (value = new Float64Array(width)));
        value[at]! += of(part);
      }
    }
    table.columns.push(column);
  }
  return table;
}

/** The histogram of all numbers in view. */
export function histogramOf(layout: Layout, series: Series, from: number, to: number): Histogram {
  const all = new Histogram(layout);
  for (let second = from; second < to; second += series.step) {
    for (const part of series.seconds.get(second) ?? []) if (part.numbers) all.add(part.numbers);
  }
  return all;
}

const DEFAULT_LOW = 1e4;
const DEFAULT_HIGH = 1e9;
const LINEAR_ROWS = 40;
const ZOOMED_ROWS = 64;
/** Stands for the row of a bucket that is not in view. */
export const NOWHERE = 0xffff;

/** The rows for the I/Os in view. For latencies, the rows cover at least 10 µs to 1 s. `crop` is the share of
 *  all I/Os, in millionths, that may lie above the end of the axis; these I/Os count in the last row. */
export function rowsFor(
  layout: Layout,
  unit: string | null,
  scale: YScale,
  all: Histogram,
  crop: number,
  zoom: Zoom | null,
): Rows {
  if (zoom) return zoomedRows(layout, scale, all, zoom);
  const most = crop > 0 ? (all.percentile(1_000_000 - crop) ?? all.max) : all.max;
  const edges =
    scale === "linear" ? linearEdges(layout, most, unit) : unit === "ns" ? logEdges(layout, all, most) : doublings(all, most);
  const of = new Uint16Array(layout.buckets);
  let row = 0;
  layout.from.forEach((number, bucket) => {
    while (row + 2 < edges.length && edges[row + 1]! <= number) row += 1;
    of[bucket] = row;
  });
  return { scale, zoomed: false, edges, of };
}

/** The rows of a zoomed axis: as narrow as buckets, or as narrow as the plot's height allows. */
function zoomedRows(layout: Layout, scale: YScale, all: Histogram, zoom: Zoom): Rows {
  const first = layout.bucketAt(zoom.from);
  const end = Math.min(Math.max(layout.bucketAt(zoom.to ?? all.max) + (zoom.to === null ? 1 : 0), first + 1), layout.buckets - 1);
  const [low, high] = [layout.from[first]!, layout.from[end]!];
  const each = Math.ceil((end - first) / ZOOMED_ROWS);
  const buckets =
    scale === "linear"
      ? Array.from({ length: LINEAR_ROWS }, (_, row) => layout.bucketAt(low + ((high - low) * row) / LINEAR_ROWS))
      : Array.from({ length: Math.ceil((end - first) / each) }, (_, row) => first + row * each);
  const begins = [...new Set(buckets)];
  const of = new Uint16Array(layout.buckets).fill(NOWHERE);
  begins.forEach((begin, row) => of.fill(row, begin, begins[row + 1] ?? end));
  return { scale, zoomed: true, edges: [...begins, end].map((bucket) => layout.from[bucket]!), of };
}

function logEdges(layout: Layout, all: Histogram, most: number): number[] {
  const low = Math.min(Math.max(all.percentile(50_000) ?? DEFAULT_LOW, 1e3), DEFAULT_LOW);
  const first = Math.floor(Math.log10(low)) * PER_DECADE;
  const high = most < all.max ? Math.max(most, 1e5) : Math.max(most, DEFAULT_HIGH - 1);
  const last = Math.min(Math.ceil(Math.log10(high + 1)) * PER_DECADE, ROWS - 1);
  const edges: number[] = [];
  for (let row = first; row <= last; row += 1) edges.push(layout.rowFrom[row] ?? rowNumber(row));
  return edges;
}

function doublings(all: Histogram, most: number): number[] {
  const first = all.count > 0 && all.min > 0 ? Math.floor(Math.log2(all.min)) : 9;
  const last = Math.max(Math.floor(Math.log2(Math.max(most, 1))) + 1, first + 6);
  return Array.from({ length: last - first + 1 }, (_, at) => 2 ** (first + at));
}

function linearEdges(layout: Layout, most: number, unit: string | null): number[] {
  if (unit === "count" && most < LINEAR_ROWS) return Array.from({ length: Math.max(most, 8) + 2 }, (_, row) => row);
  const high = roundUp(Math.max(most, unit === "ns" ? 1e5 : 100) * 1.02);
  return Array.from({ length: LINEAR_ROWS + 1 }, (_, row) =>
    row === 0 ? 0 : layout.from[layout.bucketAt((high * row) / LINEAR_ROWS)]!,
  );
}

/** The next number of the form 1, 2, 4, 5, 8 × 10^n. */
export function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 4, 5, 8].find((digit) => digit * power >= value) ?? 10) * power;
}

/** Fills the cells of a view. */
export function makeGrid(
  past: Past,
  layout: Layout,
  series: Series,
  view: View,
  scale: YScale,
  crop: number,
  highlights: string[],
  zoom: Zoom | null = null,
): Grid {
  const all = histogramOf(layout, series, view.from, view.to);
  const rows = rowsFor(layout, series.unit, scale, all, crop, zoom);
  const table = tabulate(past, series, view, (part) => part.numbers?.count ?? 0);
  const size = table.columns.length * (rows.edges.length - 1);
  const grid: Grid = {
    ...table,
    rows,
    all,
    most: 0,
    under: new Float64Array(table.columns.length),
    counts: new Float64Array(size),
    parts: highlights.map(() => new Float64Array(size)),
  };
  for (let second = view.from; second < view.to; second += series.step) {
    const at = Math.floor((second - view.from) / view.step);
    for (const part of series.seconds.get(second) ?? []) {
      if (part.numbers) addCells(grid, layout, at, part.numbers, grid.parts[highlights.indexOf(part.value)]);
    }
  }
  return grid;
}

function addCells(grid: Grid, layout: Layout, at: number, { buckets, counts }: Sparse, part: Float64Array | undefined): void {
  const {
    counts: cells,
    rows: { edges, of },
  } = grid;
  const first = at * (edges.length - 1);
  for (let index = 0; index < buckets.length; index += 1) {
    const bucket = buckets[index]!;
    const row = of[bucket]!;
    const count = counts[index]!;
    if (row === NOWHERE) {
      if (layout.from[bucket]! < edges[0]!) grid.under[at]! += count;
      continue;
    }
    const sum = (cells[first + row]! += count);
    if (sum > grid.most) grid.most = sum;
    if (part) part[first + row]! += count;
  }
}

/** The figures of a cell, for the card and for a screen reader. */
export interface Figures {
  from: number;
  to: number | null;
  count: number;
  column: Column;
  below: number;
  above: number;
}

export function figuresOf(grid: Grid, at: number, row: number): Figures | null {
  const column = grid.columns[at];
  if (!column) return null;
  const height = grid.rows.edges.length - 1;
  let below = grid.under[at]!;
  for (let one = 0; one <= row; one += 1) below += grid.counts[at * height + one]!;
  const count = grid.counts[at * height + row]!;
  return {
    ...boundsOf(grid, row, row),
    count,
    column,
    below,
    above: column.count - below + count,
  };
}

/** The range of numbers that some rows cover: its start, and its end, which is null if there is no upper
 *  bound. */
export function boundsOf(grid: Grid, low: number, high: number): { from: number; to: number | null } {
  const height = grid.rows.edges.length - 1;
  if (grid.rows.zoomed) return { from: grid.rows.edges[low]!, to: grid.rows.edges[high + 1]! };
  const isLast = high === height - 1 && grid.all.max >= grid.rows.edges[height]!;
  return { from: low === 0 ? 0 : grid.rows.edges[low]!, to: isLast ? null : grid.rows.edges[high + 1]! };
}

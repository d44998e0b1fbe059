// The cells of a heat map: columns of whole seconds, rows of whole buckets.

import { Histogram } from "../model/histogram";
import { type Layout, PER_DECADE, ROWS, rowNumber } from "../model/layout";
import type { Cell, Known, Past } from "../model/past";

/** The I/Os that a panel asks for; null stands for any. */
export interface Question {
  layer: "disk" | "volume";
  device: string;
  op: string | null;
  client: string | null;
}

/** The seconds in view, the last one excluded, and how many there are in a column. */
export interface View {
  from: number;
  to: number;
  step: number;
}

export type YScale = "log" | "linear";
export type Dimension = "op" | "client";

/** The rows in view, from below. A latency below the first row is in it, one above the last in that. */
export interface Rows {
  scale: YScale;
  /** The smallest latency of each row, and the end of the last. */
  edges: number[];
  /** The row of each bucket. */
  of: Uint16Array;
}

export interface Column {
  from: number;
  known: Known;
  /** Number of I/Os. */
  count: number;
  /** Sum of their latencies. */
  sum: number;
  dropped: number;
}

export interface Grid {
  view: View;
  rows: Rows;
  columns: Column[];
  /** By column, then row. */
  counts: Float64Array;
  /** The part of the highlighted values, in their order. */
  parts: Float64Array[];
  /** The most I/Os of a cell. */
  most: number;
  all: Histogram;
  /** By value of the breakdown: the I/Os of each column. */
  values: Map<string, Float64Array>;
}

export function wants(question: Question, cell: Cell): boolean {
  return (question.op === null || cell.op === question.op) && (question.client === null || cell.client === question.client);
}

/** All latencies in view. */
export function histogramOf(past: Past, layout: Layout, question: Question, from: number, to: number): Histogram {
  const all = new Histogram(layout);
  for (let second = from; second < to; second += 1) {
    for (const cell of past.cells(question.device, second)) if (wants(question, cell)) all.add(cell.latency);
  }
  return all;
}

const DEFAULT_LOW = 1e4;
const DEFAULT_HIGH = 1e9;
const LINEAR_ROWS = 40;

/** Rows that show all latencies: 10 µs to 1 s, and decades beyond if there are I/Os. */
export function rowsFor(layout: Layout, scale: YScale, all: Histogram): Rows {
  const edges = scale === "log" ? logEdges(layout, all) : linearEdges(layout, all);
  const of = new Uint16Array(layout.buckets);
  let row = 0;
  layout.from.forEach((ns, bucket) => {
    while (row + 2 < edges.length && edges[row + 1]! <= ns) row += 1;
    of[bucket] = row;
  });
  return { scale, edges, of };
}

function logEdges(layout: Layout, all: Histogram): number[] {
  const low = Math.min(Math.max(all.percentile(50_000) ?? DEFAULT_LOW, 1e3), DEFAULT_LOW);
  const first = Math.floor(Math.log10(low)) * PER_DECADE + 0;
  const high = Math.max(all.max, DEFAULT_HIGH - 1);
  const last = Math.min(Math.ceil(Math.log10(high + 1)) * PER_DECADE, ROWS - 1);
  const edges: number[] = [];
  for (let row = first; row <= last; row += 1) edges.push(layout.rowFrom[row] ?? rowNumber(row));
  return edges;
}

function linearEdges(layout: Layout, all: Histogram): number[] {
  const high = roundUp(Math.max(all.max, 1e5) * 1.02);
  return Array.from({ length: LINEAR_ROWS + 1 }, (_, row) => (row === 0 ? 0 : layout.from[layout.bucketAt((high * row) / LINEAR_ROWS)]!));
}

/** The next number of the form 1, 2, 4, 5, 8 × 10^n. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 4, 5, 8].find((digit) => digit * power >= value) ?? 10) * power;
}

/** Fills the cells of a view. */
export function makeGrid(past: Past, layout: Layout, question: Question, view: View, scale: YScale, by: Dimension, highlights: string[]): Grid {
  const all = histogramOf(past, layout, question, view.from, view.to);
  const rows = rowsFor(layout, scale, all);
  const height = rows.edges.length - 1;
  const width = Math.max(1, Math.ceil((view.to - view.from) / view.step));
  const grid: Grid = {
    view, rows, columns: [], all, most: 0,
    counts: new Float64Array(width * height),
    parts: highlights.map(() => new Float64Array(width * height)),
    values: new Map(),
  };
  for (let column = 0; column < width; column += 1) {
    grid.columns.push(fillColumn(grid, past, question, column, by, highlights));
  }
  for (const count of grid.counts) if (count > grid.most) grid.most = count;
  return grid;
}

function fillColumn(grid: Grid, past: Past, question: Question, at: number, by: Dimension, highlights: string[]): Column {
  const from = grid.view.from + at * grid.view.step;
  const to = Math.min(from + grid.view.step, grid.view.to);
  const column: Column = { from, known: "known", count: 0, sum: 0, dropped: 0 };
  for (let second = from; second < to; second += 1) {
    const known = past.knows(question.device, second);
    if (known !== "known") column.known = known;
    column.dropped += past.device(question.device).dropped.get(second) ?? 0;
    for (const cell of past.cells(question.device, second)) {
      if (wants(question, cell)) addCell(grid, column, at, cell, by, highlights);
    }
  }
  return column;
}

function addCell(grid: Grid, column: Column, at: number, cell: Cell, by: Dimension, highlights: string[]): void {
  const height = grid.rows.edges.length - 1;
  const part = grid.parts[highlights.indexOf(cell[by])];
  const { buckets, counts } = cell.latency;
  buckets.forEach((bucket, index) => {
    const place = at * height + grid.rows.of[bucket]!;
    grid.counts[place]! += counts[index]!;
    if (part) part[place]! += counts[index]!;
  });
  column.count += cell.latency.count;
  column.sum += cell.latency.sum;
  let value = grid.values.get(cell[by]);
  if (value === undefined) {
    value = new Float64Array(Math.ceil((grid.view.to - grid.view.from) / grid.view.step));
    grid.values.set(cell[by], value);
  }
  value[at]! += cell.latency.count;
}

/** The figures of a cell, for the card and for a reader's voice. */
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
  let below = 0;
  for (let one = 0; one <= row; one += 1) below += grid.counts[at * height + one]!;
  const count = grid.counts[at * height + row]!;
  return {
    from: row === 0 ? 0 : grid.rows.edges[row]!,
    to: row === height - 1 && grid.all.max >= grid.rows.edges[height]! ? null : grid.rows.edges[row + 1]!,
    count, column, below,
    above: column.count - below + count,
  };
}

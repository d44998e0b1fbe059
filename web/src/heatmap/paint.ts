// Paints a grid: one off-screen pixel for each cell, then one scaled blit without smoothing, so that each
// cell is crisp. An unknown value is never drawn as an empty cell.

import type { Column, Grid, Table, View } from "./grid";
import { hueRamp, type Ramp, ramp } from "./ramp";

export type ColourScale = "log" | "linear" | "rank";

export interface Look {
  dark: boolean;
  colour: ColourScale;
  /** The count that gets the last colour of the ramp. */
  most: number;
  /** Whether even a single I/O gets a colour from the middle of the ramp, so that it is easy to see. */
  enhance: boolean;
  hues: string[];
  /** The seconds between two time lines. */
  everySeconds: number;
  /** The second that the first time line marks. */
  firstSecond: number;
}

interface Inks {
  ground: string;
  line: string;
  line2: string;
  mark: string;
  ink2: string;
  grey: string;
}

/** A function that maps a count to an index in a ramp of colours. */
export function shader(look: Pick<Look, "colour" | "most" | "enhance">, counts: Float64Array): (count: number) => number {
  const most = Math.max(look.most, 1);
  const least = look.enhance ? 110 : 0;
  if (look.colour === "linear") return (count) => Math.max(least, Math.round((255 * count) / most));
  if (look.colour === "log") {
    const scale = most > 1 ? 255 / Math.log(most) : 0;
    return (count) => Math.max(least, Math.min(255, Math.round(Math.log(count) * scale)));
  }
  const distinct = [...new Set(counts)].filter((count) => count > 0).sort((a, b) => a - b);
  const ranks = new Map(
    distinct.map((count, at) => [count, distinct.length > 1 ? Math.round((255 * at) / (distinct.length - 1)) : 255]),
  );
  return (count) => Math.max(least, ranks.get(count) ?? 0);
}

export function paint(canvas: HTMLCanvasElement, grid: Grid, look: Look): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const inks = inksOf(canvas);
  const { width, height } = canvas;
  context.clearRect(0, 0, width, height);
  paintLines(context, grid, look, inks);
  context.imageSmoothingEnabled = false;
  context.drawImage(cells(grid, look), 0, 0, width, height);
  paintUnknown(context, grid, inks);
}

export function inksOf(canvas: HTMLCanvasElement): Inks {
  const style = getComputedStyle(canvas);
  const ink = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    ground: ink("ground"),
    line: ink("line"),
    line2: ink("line2"),
    mark: ink("mark"),
    ink2: ink("ink2"),
    grey: ink("grey"),
  };
}

/** Draws one pixel for each cell. */
function cells(grid: Grid, look: Look): OffscreenCanvas {
  const [width, height] = [grid.columns.length, grid.rows.edges.length - 1];
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const shade = shader(look, grid.counts);
  const base = ramp(look.dark, look.hues.length > 0);
  const hues = look.hues.map((hue) => hueRamp(hue, look.dark));
  const colours = Uint32Array.from({ length: 256 }, (_, index) =>
    packed(base[index * 3]!, base[index * 3 + 1]!, base[index * 3 + 2]!),
  );
  for (let at = 0; at < width; at += 1) {
    for (let row = 0; row < height; row += 1) {
      const place = at * height + row;
      const count = grid.counts[place]!;
      if (count === 0) continue;
      const index = shade(count);
      const [r, g, b] = hues.length === 0 ? NONE : colourOf(base, hues, grid, place, index);
      pixels[(height - 1 - row) * width + at] = hues.length === 0 ? colours[index]! : packed(r!, g!, b!);
    }
  }
  const small = new OffscreenCanvas(width, height);
  small.getContext("2d")!.putImageData(image, 0, 0);
  return small;
}

const NONE: number[] = [];

/** An opaque pixel, in the byte order that image data has on all hosts on which browsers run. */
function packed(r: number, g: number, b: number): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** The highlighted value with the largest share of a cell colours the cell, more strongly if its share is
 *  larger. */
function colourOf(base: Ramp, hues: Ramp[], grid: Grid, place: number, index: number): number[] {
  const grey = [base[index * 3]!, base[index * 3 + 1]!, base[index * 3 + 2]!];
  let best = 0;
  let share = 0;
  grid.parts.forEach((part, at) => {
    const mine = part[place]! / grid.counts[place]!;
    if (mine > share) [best, share] = [at, mine];
  });
  const hue = hues[best];
  if (!hue || share === 0) return grey;
  const mix = Math.min(1, 1.15 * share ** 1.2);
  return grey.map((value, part) => value + (hue[index * 3 + part]! - value) * mix);
}

function paintLines(context: CanvasRenderingContext2D, grid: Grid, look: Look, inks: Inks): void {
  const { width, height } = context.canvas;
  context.fillStyle = inks.line;
  for (const y of yLines(grid)) context.fillRect(0, Math.round((1 - y.share) * height), width, 1);
  paintTimeLines(context, grid.view, look, inks);
}

export function paintTimeLines(
  context: CanvasRenderingContext2D,
  view: View,
  look: Pick<Look, "firstSecond" | "everySeconds">,
  inks: Inks,
): void {
  const { width, height } = context.canvas;
  context.fillStyle = inks.line;
  const span = view.to - view.from;
  for (let second = look.firstSecond; second < view.to; second += look.everySeconds) {
    const x = Math.round(((second - view.from) / span) * width);
    if (x > 0) context.fillRect(x, 0, 1, height);
  }
}

/** The numbers that get a label, and the position of each label. */
export function yLines(grid: Grid): { number: number; share: number }[] {
  const { edges, scale } = grid.rows;
  const rows = edges.length - 1;
  // On an axis of decades, each decade has ten rows; other axes have as many labels as fit.
  const every = rows >= 20 ? 10 : Math.ceil(rows / 6);
  const step = scale === "linear" ? Math.max(1, Math.floor(rows / 4)) : every;
  return edges.flatMap((number, row) => (row % step === 0 ? [{ number, share: row / rows }] : []));
}

export function paintUnknown(context: CanvasRenderingContext2D, grid: Table, inks: Inks): void {
  const { width, height } = context.canvas;
  const at = (column: number): number => Math.round((column / grid.columns.length) * width);
  for (const [first, last] of runs(grid.columns, (column) => column.known)) {
    const known = grid.columns[first]!.known;
    const [x, w] = [at(first), at(last) - at(first)];
    if (known === "known") continue;
    context.fillStyle = inks.ground;
    context.fillRect(x, 0, w, height);
    if (known === "missing") hatch(context, x, w, inks.line2);
    if (known === "unread") dashes(context, x, w, inks.line2);
  }
  for (const [first, last] of runs(grid.columns, (column) => isIdle(column))) {
    if (!isIdle(grid.columns[first]!)) continue;
    context.fillStyle = inks.line2;
    context.fillRect(at(first), height - 2, at(last) - at(first), 2);
  }
  grid.columns.forEach((column, index) => {
    if (column.dropped === 0) return;
    context.fillStyle = inks.mark;
    context.fillRect(at(index), 0, Math.max(1, at(index + 1) - at(index) - 1), 6);
  });
}

function isIdle(column: Column): boolean {
  return column.known === "known" && column.count === 0;
}

/** Runs of neighbouring columns with the same key: the index of the first column, and the index after the last. */
function* runs(columns: Column[], key: (column: Column) => unknown): Generator<[number, number]> {
  let first = 0;
  for (let at = 1; at <= columns.length; at += 1) {
    if (at < columns.length && key(columns[at]!) === key(columns[first]!)) continue;
    yield [first, at];
    first = at;
  }
}

function hatch(context: CanvasRenderingContext2D, x: number, width: number, ink: string): void {
  const { height } = context.canvas;
  context.save();
  context.beginPath();
  context.rect(x, 0, width, height);
  context.clip();
  context.strokeStyle = ink;
  context.beginPath();
  for (let from = x - height; from < x + width; from += 5) {
    context.moveTo(from, height);
    context.lineTo(from + height, 0);
  }
  context.stroke();
  context.restore();
}

function dashes(context: CanvasRenderingContext2D, x: number, width: number, ink: string): void {
  const y = Math.round(context.canvas.height / 2);
  context.fillStyle = ink;
  for (let from = x; from < x + width; from += 10) context.fillRect(from, y, Math.min(5, x + width - from), 1);
}

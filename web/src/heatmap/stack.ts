// Paints counts by column: stacked areas, or lines. All panels have the same time axis.

import { roundUp, type Table } from "./grid";
import { inksOf, type Look, paintTimeLines, paintUnknown } from "./paint";

export type Shape = "stacked" | "lines";

export interface StackLook extends Pick<Look, "everySeconds" | "firstSecond"> {
  shape: Shape;
  /** The rate at the top of the axis. */
  top: number;
  /** The colours of the values that are highlighted. */
  hues: Map<string, string>;
}

/** The values, the largest total first. */
export function ranked(table: Table): { name: string; counts: Float64Array; total: number }[] {
  const rows = [...table.values].map(([name, counts]) => ({
    name,
    counts,
    total: counts.reduce((sum, count) => sum + count, 0),
  }));
  return rows.sort((a, b) => b.total - a.total || (a.name < b.name ? -1 : 1));
}

/** The end of the axis: a round rate that no column exceeds. */
export function topOf(table: Table): number {
  return roundUp(Math.max(1, ...table.columns.map((column) => column.count / table.view.step)) * 1.02);
}

export function paintStack(canvas: HTMLCanvasElement, table: Table, look: StackLook): void {
  const context = canvas.getContext("2d");
  if (!context) return;
  const inks = inksOf(canvas);
  const { width, height } = canvas;
  context.clearRect(0, 0, width, height);
  context.fillStyle = inks.line;
  context.fillRect(0, Math.round(height / 2), width, 1);
  paintTimeLines(context, table.view, look, inks);
  const x = (column: number): number => Math.round((column / table.columns.length) * width);
  const y = (rate: number): number => height - (rate / look.top) * (height - 2);
  const rows = ranked(table);
  if (look.shape === "stacked") stack(context, table, rows, look, inks, x, y);
  else
    rows.forEach(({ name, counts }, at) => {
      context.strokeStyle = look.hues.get(name) ?? (at === 0 ? inks.ink2 : inks.grey);
      context.lineWidth = look.hues.has(name) ? 2 : 1;
      context.setLineDash(at > 2 && !look.hues.has(name) ? [4, 3] : []);
      line(context, table, counts, x, y);
    });
  context.setLineDash([]);
  paintUnknown(context, table, inks);
}

type Place = (value: number) => number;

function stack(
  context: CanvasRenderingContext2D,
  table: Table,
  rows: ReturnType<typeof ranked>,
  look: StackLook,
  inks: ReturnType<typeof inksOf>,
  x: Place,
  y: Place,
): void {
  const base = new Float64Array(table.columns.length);
  rows.forEach(({ name, counts }, at) => {
    context.fillStyle = look.hues.get(name) ?? (at % 2 === 0 ? inks.grey : inks.line2);
    table.columns.forEach((_, column) => {
      if (counts[column] === 0) return;
      const low = base[column]! / table.view.step;
      const high = low + counts[column]! / table.view.step;
      base[column]! += counts[column]!;
      context.fillRect(x(column), y(high), x(column + 1) - x(column), Math.max(1, y(low) - y(high)));
    });
  });
}

/** Draws a line in steps, because a count covers a whole column. */
function line(context: CanvasRenderingContext2D, table: Table, counts: Float64Array, x: Place, y: Place): void {
  context.beginPath();
  let isDrawn = false;
  table.columns.forEach((column, at) => {
    if (column.known !== "known") {
      isDrawn = false;
      return;
    }
    const height = y(counts[at]! / table.view.step);
    if (isDrawn) context.lineTo(x(at), height);
    else context.moveTo(x(at), height);
    context.lineTo(x(at + 1), height);
    isDrawn = true;
  });
  context.stroke();
}

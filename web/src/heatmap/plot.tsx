// The plot of a heat map: the canvas, the cell under the cursor, and the rectangle that the mouse draws.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Feed } from "../model/feed";
import { useSize } from "../ui/hooks";
import { timeLines } from "../ui/ruler";
import type { Cursor, Grid, View } from "./grid";
import { type ColourScale, paint } from "./paint";

/** A rectangle of cells: its seconds and its rows; the ends are not included. */
export interface Rectangle {
  from: number;
  to: number;
  low: number;
  high: number;
}

export interface PlotProps {
  feed: Feed;
  grid: Grid;
  view: View;
  dark: boolean;
  colour: ColourScale;
  most: number;
  enhance: boolean;
  hues: string[];
  index: number;
  label: string;
  cursor: Cursor | null;
  setCursor: (cursor: Cursor | null) => void;
  pinned: boolean;
  pin: (pinned: boolean) => void;
  pause: () => void;
  rectangle: Rectangle | null;
  draw: (rectangle: Rectangle | null) => void;
  /** Called when the user has drawn a rectangle. */
  drawn: (rectangle: Rectangle) => void;
  children: preact.ComponentChildren;
}

/** A drag over fewer pixels counts as a click. */
const DRAG_PX = 8;

export function Plot(props: PlotProps) {
  const { feed, grid, view, dark, colour, most, enhance, hues, cursor, index, setCursor, pinned } = props;
  const [ref, { width, height }] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const lines = timeLines(feed.past!, view, width);
  // A layout effect draws before the browser paints, so the picture and its labels are in the same frame.
  useLayoutEffect(() => {
    const element = canvas.current;
    if (!element || width === 0) return;
    fit(element, width, height);
    paint(element, grid, { dark, colour, most, enhance, hues, everySeconds: lines.every, firstSecond: lines.first });
  }, [grid, width, height, dark, colour, most, enhance, hues.join(" ")]);
  const rows = grid.rows.edges.length - 1;
  const { begin, move, end, cancel, startedAt } = useDrag(props, rows);
  const cell = cursor && {
    left: `${((cursor.second - view.from) / (view.to - view.from)) * 100}%`,
    width: `${(view.step / (view.to - view.from)) * 100}%`,
  };
  return (
    <div
      class="plot"
      ref={ref}
      tabIndex={0}
      role="application"
      aria-label={`Heat map: ${props.label}. Arrow keys move the cursor; with Shift held, Enter begins and ends a rectangle.`}
      data-columns={grid.columns.length}
      data-count={grid.all.count}
      onPointerDown={begin}
      onPointerMove={(event) => {
        if (startedAt() !== null) move(event);
        else if (!pinned) setCursor(cursorAt(event, props, rows));
      }}
      onPointerUp={end}
      onPointerCancel={cancel}
      onPointerLeave={() => startedAt() !== null || pinned || setCursor(null)}
    >
      <canvas ref={canvas} aria-hidden="true" />
      {cell && cursor.second >= view.from && <i class="cursor" style={cell} />}
      {cell && cursor.panel === index && !props.rectangle && (
        <i class="cell" style={{ ...cell, bottom: `${(cursor.row / rows) * 100}%`, height: `${100 / rows}%` }} />
      )}
      {props.rectangle && <Frame rectangle={props.rectangle} view={view} rows={rows} />}
      {!props.rectangle && props.children}
    </div>
  );
}

/** Gives a canvas as many pixels as the element has device pixels. */
export function fit(element: HTMLCanvasElement, width: number, height: number): void {
  const ratio = devicePixelRatio;
  if (element.width !== Math.round(width * ratio)) element.width = Math.round(width * ratio);
  if (element.height !== Math.round(height * ratio)) element.height = Math.round(height * ratio);
}

function Frame({ rectangle, view, rows }: { rectangle: Rectangle; view: View; rows: number }) {
  const x = (second: number): number => Math.min(100, Math.max(0, ((second - view.from) / (view.to - view.from)) * 100));
  const [left, right] = [x(rectangle.from), x(rectangle.to)];
  return (
    <i
      class="rectangle"
      style={{
        left: `${left}%`,
        width: `${right - left}%`,
        bottom: `${(rectangle.low / rows) * 100}%`,
        height: `${((rectangle.high - rectangle.low) / rows) * 100}%`,
      }}
    />
  );
}

function cursorAt(event: PointerEvent, { grid, view, index }: PlotProps, rows: number): Cursor {
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  const column = Math.floor(((event.clientX - box.left) / box.width) * grid.columns.length);
  const row = Math.floor((1 - (event.clientY - box.top) / box.height) * rows);
  return {
    panel: index,
    second: view.from + Math.min(grid.columns.length - 1, Math.max(0, column)) * view.step,
    row: Math.min(rows - 1, Math.max(0, row)),
  };
}

/** The rectangle that two cells span, both included. */
export function between(one: Cursor, other: Cursor, view: View): Rectangle {
  return {
    from: Math.min(one.second, other.second),
    to: Math.max(one.second, other.second) + view.step,
    low: Math.min(one.row, other.row),
    high: Math.max(one.row, other.row) + 1,
  };
}

function useDrag(props: PlotProps, rows: number) {
  const start = useRef<{ at: Cursor; x: number; y: number; isDrag: boolean } | null>(null);
  const [, redraw] = useState(0);
  const begin = (event: PointerEvent): void => {
    if (event.button !== 0 || event.pointerType === "touch") return;
    start.current = { at: cursorAt(event, props, rows), x: event.clientX, y: event.clientY, isDrag: false };
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent): void => {
    const from = start.current!;
    from.isDrag ||= Math.abs(event.clientX - from.x) >= DRAG_PX && Math.abs(event.clientY - from.y) >= DRAG_PX;
    if (!from.isDrag) return;
    props.pause();
    props.draw(between(from.at, cursorAt(event, props, rows), props.view));
    redraw((count) => count + 1);
  };
  const end = (event: PointerEvent): void => {
    const from = start.current;
    start.current = null;
    const at = cursorAt(event, props, rows);
    if (from?.isDrag) {
      props.drawn(between(from.at, at, props.view));
      return;
    }
    props.draw(null);
    props.setCursor(at);
    props.pin(!props.pinned);
    props.pause();
  };
  return { begin, move, end, cancel: () => (start.current = null), startedAt: () => start.current };
}

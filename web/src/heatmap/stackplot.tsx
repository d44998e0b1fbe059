// The plot of counts: stacked areas or lines.

import { useLayoutEffect, useRef } from "preact/hooks";
import type { Feed } from "../model/feed";
import { useSize } from "../ui/hooks";
import { timeLines } from "../ui/ruler";
import type { Cursor, Table, View } from "./grid";
import { fit } from "./plot";
import { paintStack, type Shape } from "./stack";

interface StackPlotProps {
  feed: Feed;
  table: Table;
  view: View;
  dark: boolean;
  shape: Shape;
  top: number;
  hues: Map<string, string>;
  index: number;
  label: string;
  cursor: Cursor | null;
  setCursor: (cursor: Cursor | null) => void;
  pause: () => void;
}

export function StackPlot({ feed, table, view, dark, shape, top, hues, index, label, cursor, setCursor, pause }: StackPlotProps) {
  const [ref, { width, height }] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const lines = timeLines(feed.past!, view, width);
  useLayoutEffect(() => {
    if (!canvas.current || width === 0) return;
    fit(canvas.current, width, height);
    paintStack(canvas.current, table, { shape, top, hues, everySeconds: lines.every, firstSecond: lines.first });
  }, [table, width, height, dark, shape, top, [...hues.values()].join(" ")]);
  const at = (event: PointerEvent): Cursor => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * table.columns.length);
    return { panel: index, second: view.from + Math.min(table.columns.length - 1, Math.max(0, column)) * view.step, row: 0 };
  };
  const count = table.columns.reduce((sum, column) => sum + column.count, 0);
  return (
    <div
      class="plot low"
      ref={ref}
      tabIndex={0}
      role="application"
      aria-label={`${label}. Arrow keys move the cursor.`}
      data-count={count}
      onPointerMove={(event) => setCursor(at(event))}
      onPointerLeave={() => setCursor(null)}
      onClick={pause}
    >
      <canvas ref={canvas} aria-hidden="true" />
      {cursor && cursor.second >= view.from && (
        <i class="cursor" style={{ left: `${((cursor.second - view.from) / (view.to - view.from)) * 100}%` }} />
      )}
    </div>
  );
}

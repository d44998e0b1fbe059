// The content of a panel, for export: the values as CSV, the picture as SVG or PNG, and the command that prints the
// same values.

import { useRef } from "preact/hooks";
import type { Source } from "../model/feed";
import type { Past } from "../model/past";
import { type Statistic, sentence, written } from "../model/statistic";
import { amount, clock } from "../words";
import type { Grid, Table } from "./grid";
import { type ColourScale, shader, yLines } from "./paint";
import { ramp } from "./ramp";
import { ranked } from "./stack";

interface MenuProps {
  source: Source;
  statistic: Statistic;
  table: Table;
  grid: Grid | null;
  past: Past;
  unit: string | null;
  dark: boolean;
  colour: ColourScale;
  hues: string[];
}

export function Menu(props: MenuProps) {
  const ref = useRef<HTMLDetailsElement>(null);
  const { statistic } = props;
  const save = (suffix: string, make: () => Blob | Promise<Blob>): void => {
    if (ref.current) ref.current.open = false;
    void Promise.resolve(make()).then((blob) => download(`${written(statistic).replace(/[^\w.=-]+/g, "_")}.${suffix}`, blob));
  };
  const text = (type: string, words: string): Blob => new Blob([words], { type });
  return (
    <details class="menu-of-panel" ref={ref}>
      <summary aria-label="Save" title="Save this panel, or take its command">
        ⋯
      </summary>
      <div>
        <button onClick={() => save("csv", () => text("text/csv", csv(props)))}>CSV</button>
        <button onClick={() => save("svg", () => text("image/svg+xml", svg(props)))}>SVG</button>
        <button
          onClick={(event) => save("png", () => png(event.currentTarget.closest(".panel")!.querySelector(".plot canvas")!))}
        >
          PNG
        </button>
        <code>{command(props)}</code>
      </div>
    </details>
  );
}

/** The command that prints the same figures. */
function command({ source, statistic, table, past }: MenuProps): string {
  const asked = `dashpot stat '${written(statistic)}'`;
  const lasts = table.view.to - table.view.from;
  if (source.kind === "daemon") return `${asked} --last ${lasts}s`;
  if (source.kind === "recording")
    return `${asked} ${source.words} --from ${clock(past.wall(table.view.from))} --to ${clock(past.wall(table.view.to))}`;
  return source.kind === "kernel" ? `sudo ${asked} -k` : `dashpot sim ${source.name} --report "stat '${written(statistic)}'"`;
}

export function download(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}

/** The CSV has a row for each column and value and, for a statistic of numbers, also a row for each cell.
 *  Unknown values have no row. */
export function csv({ table, grid, past }: Pick<MenuProps, "table" | "grid" | "past">): string {
  const field = (value: string): string =>
    /[",\n]/.test(value) || /^[=+\-@]/.test(value) ? `"${value.replace(/"/g, '""')}"` : value;
  const time = (second: number): string => new Date(past.wall(second)).toISOString();
  if (grid) {
    const height = grid.rows.edges.length - 1;
    const rows = grid.columns.flatMap((column, at) =>
      Array.from({ length: height }, (_, row) => ({ column, row, count: grid.counts[at * height + row]! })),
    );
    const lines = rows
      .filter(({ column, count }) => column.known === "known" && count > 0)
      .map(({ column, row, count }) =>
        [time(column.from), grid.view.step, grid.rows.edges[row], grid.rows.edges[row + 1], count].join(","),
      );
    return ["time,seconds,from,below,count", ...lines, ""].join("\n");
  }
  const lines = ranked(table).flatMap(({ name, counts }) =>
    table.columns.flatMap((column, at) =>
      column.known === "known" ? [[time(column.from), table.view.step, field(name), counts[at]].join(",")] : [],
    ),
  );
  return ["time,seconds,value,count", ...lines, ""].join("\n");
}

const WIDTH = 960;
const HEIGHT = 320;

/** Escapes words, so that HTML or SVG shows them as text. */
export function escape(words: string): string {
  return words.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
}

export type PictureProps = Pick<MenuProps, "statistic" | "table" | "grid" | "past" | "unit" | "colour">;

export function svg(props: PictureProps): string {
  const { statistic, table, past } = props;
  const x = (column: number): number => (column / table.columns.length) * WIDTH;
  const rects = props.grid ? cellRects(props.grid, props, x) : stackRects(table, x);
  const times = `${clock(past.wall(table.view.from))} – ${clock(past.wall(table.view.to))}`;
  const labels = props.grid
    ? yLines(props.grid).map(
        ({ number, share }) =>
          `<text x="-8" y="${(1 - share) * HEIGHT + 4}" text-anchor="end">${escape(amount(props.unit, number))}</text>`,
      )
    : [];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-70 -34 ${WIDTH + 80} ${HEIGHT + 44}" font-family="sans-serif" font-size="12">
<text x="0" y="-14" font-weight="600">${escape(sentence(statistic))}, ${escape(times)}</text>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff" stroke="#b3b8b9"/>
${labels.join("\n")}
<g shape-rendering="crispEdges">${rects.join("")}</g>
</svg>
`;
}

function cellRects(grid: Grid, { colour }: PictureProps, x: (column: number) => number): string[] {
  const height = grid.rows.edges.length - 1;
  const shade = shader({ colour, most: grid.most, enhance: false }, grid.counts);
  const colours = ramp(false);
  const rects: string[] = [];
  grid.columns.forEach((_, at) => {
    for (let row = 0; row < height; row += 1) {
      const count = grid.counts[at * height + row]!;
      if (count === 0) continue;
      const rgb = [...colours.slice(shade(count) * 3, shade(count) * 3 + 3)].join(",");
      rects.push(
        `<rect x="${x(at).toFixed(2)}" y="${((1 - (row + 1) / height) * HEIGHT).toFixed(2)}" width="${(x(1) - x(0)).toFixed(2)}" height="${(HEIGHT / height).toFixed(2)}" fill="rgb(${rgb})"/>`,
      );
    }
  });
  return rects;
}

function stackRects(table: Table, x: (column: number) => number): string[] {
  const top = Math.max(1, ...table.columns.map((column) => column.count));
  const base = new Float64Array(table.columns.length);
  return ranked(table).flatMap(({ counts }, rank) =>
    table.columns.flatMap((_, at) => {
      const count = counts[at]!;
      if (count === 0) return [];
      base[at]! += count;
      const rect = `<rect x="${x(at).toFixed(2)}" y="${((1 - base[at]! / top) * HEIGHT).toFixed(2)}" width="${(x(1) - x(0)).toFixed(2)}" height="${((count / top) * HEIGHT).toFixed(2)}" fill="${rank % 2 === 0 ? "#868f95" : "#b3b8b9"}"/>`;
      return [rect];
    }),
  );
}

/** The plot as it is on the screen, on a background in the colour of the page. */
function png(plot: HTMLCanvasElement): Promise<Blob> {
  const paper = document.createElement("canvas");
  [paper.width, paper.height] = [plot.width, plot.height];
  const context = paper.getContext("2d")!;
  context.fillStyle = getComputedStyle(plot).getPropertyValue("--paper");
  context.fillRect(0, 0, paper.width, paper.height);
  context.drawImage(plot, 0, 0);
  return new Promise((resolve, reject) =>
    paper.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the browser made no picture"))), "image/png"),
  );
}

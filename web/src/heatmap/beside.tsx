// Beside a heat map: the distribution of the whole view, and the list of its parts.

import { useState } from "preact/hooks";
import { UNKNOWN, cut, latency, rate, thousands } from "../words";
import type { Dimension, Grid } from "./grid";

const PERCENTILES = [["p50", 500_000], ["p90", 900_000], ["p99", 990_000]] as const;
const LABEL_PX = 12;
const HEIGHT_PX = 264;

export function Margin({ grid }: { grid: Grid }) {
  const rows = grid.rows.edges.length - 1;
  const counts = new Float64Array(rows);
  grid.all.counts.forEach((count, bucket) => {
    if (count > 0) counts[grid.rows.of[bucket]!]! += count;
  });
  const most = Math.sqrt(Math.max(1, ...counts));
  let last = -Infinity;
  const labels = PERCENTILES.flatMap(([name, ppm]) => {
    const value = grid.all.percentile(ppm);
    if (value === null) return [];
    const place = placeOf(grid, value);
    if ((place - last) * HEIGHT_PX < LABEL_PX) return [];
    last = place;
    return [{ name, value, place }];
  });
  return (
    <div class="margin" aria-label={PERCENTILES.map(([name, ppm]) => `${name} ${latency(grid.all.percentile(ppm))}`).join(", ")} role="img">
      <svg viewBox={`0 0 30 ${rows}`} preserveAspectRatio="none" aria-hidden="true">
        {[...counts].map((count, row) => count > 0 && <rect key={row} x="0" y={rows - 1 - row + 0.1} width={Math.max(0.6, (30 * Math.sqrt(count)) / most)} height="0.8" />)}
      </svg>
      {labels.map(({ name, value, place }) => <span key={name} style={{ bottom: `${place * 100}%` }} title={latency(value)}>{name}</span>)}
    </div>
  );
}

/** The height of a latency, as a share. */
function placeOf(grid: Grid, ns: number): number {
  const { edges } = grid.rows;
  const rows = edges.length - 1;
  const row = edges.findLastIndex((edge) => edge <= ns);
  if (row < 0) return 0.5 / rows;
  return Math.min(1, (row + 0.5) / rows);
}

const HUES = {
  light: ["#C8500A", "#2A4F9E", "#1E9E8A", "#842662", "#B98A00", "#2E8090", "#494E17", "#955351"],
  dark: ["#FF8A4C", "#6D9BEA", "#9EECDF", "#EAA0B4", "#87763B", "#5ACCF0", "#E3E38D", "#B4847B"],
};
/** The colours that were given out, by name: a name keeps its colour in all panels. */
const given = new Map<string, number>();

export function hueOf(name: string, dark: boolean): string {
  const at = given.get(name) ?? given.size % HUES.light.length;
  given.set(name, at);
  return HUES[dark ? "dark" : "light"][at]!;
}

interface BreakdownProps {
  grid: Grid;
  by: Dimension;
  chosen: string[];
  choose: (chosen: string[]) => void;
  dark: boolean;
  /** The column under the cursor. */
  at: number | null;
  only: (value: string) => void;
}

const SHOWN = 10;

export function Breakdown({ grid, by, chosen, choose, dark, at, only }: BreakdownProps) {
  const [all, showAll] = useState(false);
  const seconds = grid.columns.filter((column) => column.known === "known").length * grid.view.step;
  const rows = [...grid.values].map(([name, counts]) => ({ name, counts, total: counts.reduce((sum, count) => sum + count, 0) }));
  rows.sort((a, b) => b.total - a.total);
  const click = (name: string, several: boolean): void => {
    const others = chosen.filter((one) => one !== name);
    if (several) choose(chosen.includes(name) ? others : [...others, name]);
    else choose(chosen.includes(name) && chosen.length === 1 ? [] : [name]);
  };
  return (
    <div class="breakdown">
      <table>
        <thead><tr><th scope="col">{by === "op" ? "Type" : "Client"}</th><th scope="col">cursor</th><th scope="col">mean/s</th></tr></thead>
        <tbody>
          {(all ? rows : rows.slice(0, SHOWN)).map(({ name, counts, total }) => (
            <tr key={name} class={chosen.includes(name) ? "chosen" : ""}>
              <th scope="row">
                <button class="plain value" aria-pressed={chosen.includes(name)} title={`${name}: a click colours it, with Shift several`} onClick={(event) => click(name, event.shiftKey)}>
                  <i class="swatch" style={chosen.includes(name) ? { background: hueOf(name, dark), borderColor: hueOf(name, dark) } : {}} />{cut(name, 15)}
                </button>
                <button class="plain only" aria-label={`Only ${name}`} title={`Only ${name}`} onClick={() => only(name)}>→</button>
              </th>
              <td>{at === null ? UNKNOWN : thousands(counts[at] ?? 0)}</td>
              <td>{seconds === 0 ? UNKNOWN : rate(total / seconds)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > SHOWN && <button class="link" onClick={() => showAll(!all)}>{all ? "fewer" : `${rows.length - SHOWN} more`}</button>}
    </div>
  );
}

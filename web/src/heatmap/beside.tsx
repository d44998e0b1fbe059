// The parts of a panel next to its plot: the distribution of the whole view, and the list of the values of the
// breakdown.

import { useState } from "preact/hooks";
import { nameOf } from "../model/statistic";
import { amount, capitalized, cut, rate, size, thousands, three, UNKNOWN } from "../words";
import { type Grid, NOWHERE, type Table } from "./grid";
import { ranked } from "./stack";

const PERCENTILES = [
  ["p50", 500_000],
  ["p90", 900_000],
  ["p99", 990_000],
] as const;
const LABEL_PX = 12;
const HEIGHT_PX = 264;

export function Margin({ grid, unit }: { grid: Grid; unit: string | null }) {
  const rows = grid.rows.edges.length - 1;
  const counts = new Float64Array(rows);
  grid.all.counts.forEach((count, bucket) => {
    if (count > 0 && grid.rows.of[bucket] !== NOWHERE) counts[grid.rows.of[bucket]!]! += count;
  });
  const most = Math.sqrt(Math.max(1, ...counts));
  let last = -Infinity;
  const labels = PERCENTILES.flatMap(([name, ppm]) => {
    const value = grid.all.percentile(ppm);
    if (value === null || isOutside(grid, value)) return [];
    const place = placeOf(grid, value);
    if ((place - last) * HEIGHT_PX < LABEL_PX) return [];
    last = place;
    return [{ name, value, place }];
  });
  return (
    <div
      class="margin"
      aria-label={PERCENTILES.map(([name, ppm]) => `${name} ${amount(unit, grid.all.percentile(ppm))}`).join(", ")}
      role="img"
      data-p50={grid.all.percentile(500_000)}
      data-p90={grid.all.percentile(900_000)}
      data-p99={grid.all.percentile(990_000)}
      data-max={grid.all.max}
    >
      <svg viewBox={`0 0 30 ${rows}`} preserveAspectRatio="none" aria-hidden="true">
        {[...counts].map(
          (count, row) =>
            count > 0 && (
              <rect key={row} x="0" y={rows - 1 - row + 0.1} width={Math.max(0.6, (30 * Math.sqrt(count)) / most)} height="0.8" />
            ),
        )}
      </svg>
      {labels.map(({ name, value, place }) => (
        <span key={name} style={{ bottom: `${place * 100}%` }} title={amount(unit, value)}>
          {name}
        </span>
      ))}
    </div>
  );
}

/** Whether the zoom leaves out a number. */
function isOutside({ rows }: Grid, number: number): boolean {
  return rows.zoomed && (number < rows.edges[0]! || number >= rows.edges.at(-1)!);
}

/** The position of a number in the plot, as a share of the plot's height. */
function placeOf(grid: Grid, number: number): number {
  const { edges } = grid.rows;
  const rows = edges.length - 1;
  const row = edges.findLastIndex((edge) => edge <= number);
  if (row < 0) return 0.5 / rows;
  return Math.min(1, (row + 0.5) / rows);
}

const HUES = {
  light: ["#C8500A", "#2A4F9E", "#1E9E8A", "#842662", "#B98A00", "#2E8090", "#494E17", "#955351"],
  dark: ["#FF8A4C", "#6D9BEA", "#9EECDF", "#EAA0B4", "#87763B", "#5ACCF0", "#E3E38D", "#B4847B"],
};
/** For each name, the index of its colour, which is the same in all panels. */
const given = new Map<string, number>();

export function hueOf(name: string, dark: boolean): string {
  const at = given.get(name) ?? given.size % HUES.light.length;
  given.set(name, at);
  return HUES[dark ? "dark" : "light"][at]!;
}

interface BreakdownProps {
  table: Table;
  by: string | null;
  unit: "ops" | "bytes";
  chosen: string[];
  choose: (chosen: string[]) => void;
  dark: boolean;
  /** The column under the cursor. */
  at: number | null;
  /** Shows only the I/Os of one value. */
  only: (value: string) => void;
  /** Whether a condition can select this value. */
  can: (value: string) => boolean;
  /** The amplification of a volume's writes, if it is large. */
  factor: (value: string) => number | null;
}

const SHOWN = 10;
/** At most this many values have different colours. */
const COLOURED = HUES.light.length;

export function Breakdown({ table, by, unit, chosen, choose, dark, at, only, can, factor }: BreakdownProps) {
  const [all, showAll] = useState(false);
  const seconds = table.columns.filter((column) => column.known === "known").length * table.view.step;
  const rows = ranked(table);
  const click = (name: string, several: boolean): void => {
    const others = chosen.filter((one) => one !== name);
    if (!several) choose(chosen.includes(name) && chosen.length === 1 ? [] : [name]);
    else if (chosen.includes(name)) choose(others);
    else if (others.length < COLOURED) choose([...others, name]);
  };
  const figure = (count: number): string => (unit === "bytes" ? size(Math.round(count)) : rate(count));
  return (
    <div class="breakdown">
      <table>
        <thead>
          <tr>
            <th scope="col">{by === null ? "All" : capitalized(nameOf(by))}</th>
            <th scope="col">cursor</th>
            <th scope="col">mean/s</th>
          </tr>
        </thead>
        <tbody>
          {(all ? rows : rows.slice(0, SHOWN)).map(({ name, counts, total }) => (
            <tr key={name} class={chosen.includes(name) ? "chosen" : ""}>
              <th scope="row">
                {by === null ? (
                  "all"
                ) : (
                  <button
                    class="plain value"
                    aria-pressed={chosen.includes(name)}
                    title={`${name}: a click colours it, Shift+click colours several`}
                    onClick={(event) => (event.altKey ? only(name) : click(name, event.shiftKey))}
                  >
                    <i
                      class="swatch"
                      style={chosen.includes(name) ? { background: hueOf(name, dark), borderColor: hueOf(name, dark) } : {}}
                    />
                    {cut(name, 15)}
                  </button>
                )}
                {factor(name) !== null && (
                  <a class="factor" href="#pools" title="How many blocks one of its writes becomes: see Amplification">
                    ×{three(factor(name)!)}
                  </a>
                )}
                {can(name) && (
                  <button class="plain only" aria-label={`Only ${name}`} title={`Only ${name}`} onClick={() => only(name)}>
                    →
                  </button>
                )}
              </th>
              <td>{at === null ? UNKNOWN : unit === "bytes" ? size(counts[at] ?? 0) : thousands(counts[at] ?? 0)}</td>
              <td>{seconds === 0 ? UNKNOWN : figure(total / seconds)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > SHOWN && (
        <button class="link" onClick={() => showAll(!all)}>
          {all ? "fewer" : `${rows.length - SHOWN} more`}
        </button>
      )}
      {chosen.length >= COLOURED && <p class="note">At most eight values have a colour. Take one away first.</p>}
    </div>
  );
}

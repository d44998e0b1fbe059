// A panel: a statistic with its plot, its distribution and the list of its parts.

import { useMemo, useRef, useState } from "preact/hooks";
import type { Feed } from "../model/feed";
import type { Past } from "../model/past";
import type { Part, Series } from "../model/series";
import { conditionOf, isOfNumbers, type Statistic, sentence, withCondition, written } from "../model/statistic";
import { useKeys } from "../ui/hooks";
import { blocksOf } from "../views/writes";
import { amount, clock, percent, plural, roundAmount, thousands } from "../words";
import { Breakdown, hueOf, Margin } from "./beside";
import { Card } from "./card";
import { Drawer } from "./drawer";
import { Menu } from "./export";
import {
  boundsOf,
  type Cursor,
  type Figures,
  figuresOf,
  type Grid,
  makeGrid,
  rowsFor,
  type Table,
  tabulate,
  type View,
  type YScale,
  type Zoom,
} from "./grid";
import { type ColourScale, yLines } from "./paint";
import { between, Plot, type Rectangle } from "./plot";
import { type Shape, topOf } from "./stack";
import { StackPlot } from "./stackplot";
import { State } from "./states";
import { Title } from "./title";

export interface PanelProps {
  index: number;
  feed: Feed;
  statistic: Statistic;
  view: View;
  dark: boolean;
  live: boolean;
  cursor: Cursor | null;
  setCursor: (cursor: Cursor | null) => void;
  pause: () => void;
  change: (next: Statistic | null) => void;
  add: (next: Statistic) => void;
  top: Tops;
}

export function Panel(props: PanelProps) {
  const { feed, statistic } = props;
  const series = feed.follower!.of(written(statistic));
  const [chosen, choose] = useState<string[]>([]);
  const shared = { ...props, series, chosen, choose };
  if (series.refused !== null) {
    return (
      <section class="panel bad">
        <p>
          “{series.name}” cannot be shown: {series.refused}.
        </p>
        <button onClick={() => props.change(null)}>Open without this panel</button>
      </section>
    );
  }
  return isOfNumbers(statistic.metric) ? <HeatPanel {...shared} /> : <CountPanel {...shared} />;
}

interface SharedProps extends PanelProps {
  series: Series;
  chosen: string[];
  choose: (chosen: string[]) => void;
}

const COLOURS: ColourScale[] = ["log", "linear", "rank"];
/** The shares of all I/Os, in millionths, that the user can let lie above the end of the axis. */
const CROPS = [0, 1_000, 10_000];

function HeatPanel(props: SharedProps) {
  const { feed, statistic, series, view, dark, cursor, index, chosen } = props;
  const past = feed.past!;
  const isOrdinal = statistic.metric === "offset" || statistic.metric === "depth";
  const [yScale, setYScale] = useState<YScale>(isOrdinal ? "linear" : "log");
  const [colour, setColour] = useState<ColourScale>("log");
  const [enhance, setEnhance] = useState(false);
  const [crop, setCrop] = useState(0);
  const [zoom, setZoom] = useState<Zoom | null>(null);
  const [pinned, setPinned] = useState(false);
  const [rectangle, setRectangle] = useState<Rectangle | null>(null);
  const [asked, ask] = useState<Rectangle | null>(null);
  const corner = useRef<Cursor | null>(null);
  const grid = useMemo(
    () => makeGrid(past, feed.layout!, series, view, yScale, crop, chosen, zoom),
    [series, series.version, view.from, view.to, view.step, yScale, crop, chosen.join("\n"), past.to, zoom],
  );
  const most = useSteadyMost(grid.most, props.live);
  const column = cursor && Math.floor((cursor.second - view.from) / view.step);
  const mine = cursor !== null && cursor.panel === index;
  const figures = cursor ? figuresOf(grid, column!, mine ? cursor.row : 0) : null;
  const slowest = useSlowest(grid, props);
  const drawn = (next: Rectangle | null): void => {
    setRectangle(next);
    ask(next);
  };
  const turnScale = (): void => setYScale(yScale === "log" ? "linear" : "log");
  const turnColour = (): void => setColour(after(COLOURS, colour));
  const turnCrop = (): void => setCrop(after(CROPS, crop));
  const zoomTo = (next: Zoom | null): void => {
    setZoom(next);
    drawn(null);
    // The cursor stays at the same number, whose row may change.
    const { edges } = rowsFor(feed.layout!, series.unit, yScale, grid.all, crop, next);
    const row = mine ? edges.findLastIndex((edge) => edge <= grid.rows.edges[cursor.row]!) : -1;
    if (mine) props.setCursor(row < 0 || row === edges.length - 1 ? null : { ...cursor, row });
  };
  const zoomIn = (row: number): void => {
    const height = grid.rows.edges.length - 1;
    const quarter = Math.max(1, Math.floor(height / 4));
    zoomTo(
      asked
        ? boundsOf(grid, asked.low, asked.high - 1)
        : boundsOf(grid, Math.max(0, row - quarter), Math.min(height - 1, row + quarter)),
    );
  };
  useCursorKeys(props, grid, grid.rows.edges.length - 1, (key, from, shift) => {
    if (key === "Enter" && shift) {
      props.pause();
      if (corner.current) drawn(between(corner.current, from, view));
      corner.current = corner.current ? null : from;
    } else if (key === "Enter") setPinned(!pinned);
    else if (key === "Escape") {
      setPinned(false);
      drawn(null);
      props.setCursor(null);
    } else if (key === "m") slowest(false);
    else if (key === "n") slowest(true);
    else if (key === "E" || key === "e") setEnhance(!enhance);
    else if (key === "y") turnScale();
    else if (key === "c") turnColour();
    else if (key === "o") turnCrop();
    else if (key === "v") zoomIn(from.row);
    else if (key === "V") zoomTo(null);
    else return false;
    return true;
  });
  return (
    <section class="panel" aria-label={sentence(statistic)}>
      <Title {...props}>
        <button class="link slowest" title="Go to the greatest (m), the next (n)" onClick={() => slowest(false)}>
          {series.unit === "ns" ? "slowest" : "greatest"}
        </button>
        <button class="link slowest" title="Leave the greatest out of the axis (o)" onClick={turnCrop}>
          {crop === 0 ? "all" : `crop ${crop / 10_000} %`}
        </button>
        <button class="link" title="Scale of the axis (y)" onClick={turnScale}>
          {yScale}
        </button>
        <span class="ramp" title={`Colour: ${colour} (c)`}>
          <i class="ramp-strip" />1 – {roundAmount(null, most)}{" "}
          <button class="link" onClick={turnColour}>
            {colour}
          </button>
        </span>
        <Menu
          source={feed.source!}
          statistic={statistic}
          table={grid}
          grid={grid}
          past={past}
          unit={series.unit}
          dark={dark}
          colour={colour}
          hues={chosen.map((name) => hueOf(name, dark))}
        />
      </Title>
      <div class="plot-row">
        <Gutter
          labels={yLines(grid).map(({ number, share }) => ({
            share,
            words: zoom
              ? amount(series.unit, number)
              : roundAmount(
                  series.unit,
                  yScale === "log" && series.unit === "ns" ? 10 ** Math.round(Math.log10(number)) : number,
                ),
          }))}
          flag={
            mine
              ? {
                  share: (cursor.row + 0.5) / (grid.rows.edges.length - 1),
                  words: amount(series.unit, grid.rows.edges[cursor.row]),
                }
              : null
          }
        />
        <Plot
          {...props}
          grid={grid}
          label={sentence(statistic)}
          colour={colour}
          most={most}
          enhance={enhance}
          hues={chosen.map((name) => hueOf(name, dark))}
          pinned={pinned}
          pin={setPinned}
          rectangle={rectangle}
          draw={setRectangle}
          drawn={drawn}
        >
          {mine && figures && (
            <Card
              feed={feed}
              grid={grid}
              unit={series.unit}
              figures={figures}
              at={(cursor.second - view.from) / (view.to - view.from)}
              pinned={pinned}
            />
          )}
        </Plot>
        <Margin grid={grid} unit={series.unit} />
        <List {...props} table={grid} column={column} unit="ops" />
      </div>
      <State feed={feed} statistic={statistic} series={series} table={grid} live={props.live} />
      {zoom && <ZoomState grid={grid} unit={series.unit} all={() => zoomTo(null)} />}
      <p class="reader" aria-live="polite">
        {mine && figures && figures.count > 0 && spoken(feed, figures, series.unit)}
      </p>
      {asked && (
        <Drawer
          key={Object.values(asked).join(" ")}
          {...props}
          grid={grid}
          rectangle={asked}
          close={() => drawn(null)}
          zoom={() => zoomIn(0)}
        />
      )}
    </section>
  );
}

/** The range of a zoomed axis, and how many I/Os it leaves out. */
function ZoomState({ grid, unit, all }: { grid: Grid; unit: string | null; all: () => void }) {
  const { edges } = grid.rows;
  const inside = grid.counts.reduce((sum, count) => sum + count, 0);
  return (
    <p class="state">
      Zoomed to {amount(unit, edges[0])} – {amount(unit, edges.at(-1))}: {plural(grid.all.count - inside, "I/O")} of{" "}
      {thousands(grid.all.count)} outside.{" "}
      <button class="link" title="All numbers (V)" onClick={all}>
        Show all
      </button>
    </p>
  );
}

function CountPanel(props: SharedProps) {
  const { feed, statistic, series, view, dark, cursor, chosen } = props;
  const past = feed.past!;
  const [shape, setShape] = useState<Shape>("stacked");
  const unit = unitOf(statistic);
  const table = useMemo(
    () => countsOf(past, series, view, unit),
    [series, series.version, view.from, view.to, view.step, past.to, unit],
  );
  const top = Math.max(topOf(table), props.top[unit] ?? 0);
  const hues = new Map(chosen.map((name) => [name, hueOf(name, dark)]));
  const column = cursor && Math.floor((cursor.second - view.from) / view.step);
  const turn = (): void => setShape(shape === "stacked" ? "lines" : "stacked");
  useCursorKeys(props, table, 1, (key) => {
    if (key === "Escape") props.setCursor(null);
    else if (key === "y") turn();
    else return false;
    return true;
  });
  const said = (value: number): string => `${unit === "bytes" ? amount("bytes", value) : roundAmount(null, value)}/s`;
  return (
    <section class="panel" aria-label={sentence(statistic)}>
      <Title {...props}>
        <button class="link" title="Stacked areas or lines (y)" onClick={turn}>
          {shape}
        </button>
        <Menu
          source={feed.source!}
          statistic={statistic}
          table={table}
          grid={null}
          past={past}
          unit={unit}
          dark={dark}
          colour="log"
          hues={[]}
        />
      </Title>
      <div class="plot-row">
        <Gutter
          low
          labels={[
            { share: 0, words: "0" },
            { share: 0.5, words: said(top / 2) },
            { share: 0.97, words: said(top) },
          ]}
          flag={null}
        />
        <StackPlot {...props} label={sentence(statistic)} table={table} shape={shape} top={top} hues={hues} />
        <div class="margin low" />
        <List {...props} table={table} column={column} unit={unit} />
      </div>
      <State feed={feed} statistic={statistic} series={series} table={table} live={props.live} />
    </section>
  );
}

type CountUnit = "ops" | "bytes";

export function unitOf(statistic: Statistic): CountUnit {
  return statistic.metric === "bytes" ? "bytes" : "ops";
}

export function countsOf(past: Past, series: Series, view: View, unit: CountUnit): Table {
  return tabulate(past, series, view, (part: Part) => (unit === "bytes" ? part.bytes : part.count));
}

/** The upper end of the vertical axis, which is the same for panels with the same metric, so that they can be
 *  compared. */
export function useTops(feed: Feed, statistics: Statistic[], view: View): Tops {
  const counted = statistics.filter((one) => !isOfNumbers(one.metric));
  const all = counted.map((one) => feed.follower!.of(written(one)));
  const key = all.map((series) => `${series.name} ${series.version}`).join(" ");
  return useMemo(() => {
    const tops: Tops = {};
    counted.forEach((one, at) => {
      const unit = unitOf(one);
      tops[unit] = Math.max(tops[unit] ?? 0, topOf(countsOf(feed.past!, all[at]!, view, unit)));
    });
    return tops;
  }, [key, view.from, view.to, view.step]);
}

type Tops = Partial<Record<CountUnit, number>>;

function List({
  feed,
  statistic,
  chosen,
  choose,
  dark,
  change,
  table,
  column,
  unit,
}: SharedProps & { table: Table; column: number | null; unit: CountUnit }) {
  const only = (value: string): void => {
    const condition = statistic.by === null ? null : conditionOf(statistic.by, value);
    if (condition !== null) change({ ...withCondition(statistic, condition), by: nextBy(statistic) });
  };
  const can = (value: string): boolean => statistic.by !== null && conditionOf(statistic.by, value) !== null;
  return (
    <Breakdown
      table={table}
      by={statistic.by}
      unit={unit}
      chosen={chosen}
      choose={choose}
      dark={dark}
      at={column}
      only={only}
      can={can}
      factor={(name) => (statistic.layer === "volume" && statistic.by === "device" ? blocksOf(feed, name) : null)}
    />
  );
}

/** The breakdown that the page proposes next, after the reader has chosen one value of the present breakdown. */
function nextBy({ by, conditions, metric }: Statistic): string | null {
  if (metric === "offset") return null;
  const isTaken = (word: string): boolean => word === by || conditions.some((one) => one.startsWith(`${word}=`));
  return ["op", "device", "client", "size"].find((word) => !isTaken(word)) ?? null;
}

function after<T>(list: T[], one: T): T {
  return list[(list.indexOf(one) + 1) % list.length]!;
}

function spoken(feed: Feed, figures: Figures, unit: string | null): string {
  const range =
    figures.to === null
      ? `${amount(unit, figures.from)} and above`
      : `${amount(unit, figures.from)} to ${amount(unit, figures.to)}`;
  return `${clock(feed.past!.wall(figures.column.from))}, ${range}, ${plural(figures.count, "I/O")}, ${percent(figures.count / figures.column.count)} of the column`;
}

/** The largest count of a cell; the value grows at once, and shrinks only after ten seconds, so that the
 *  colours do not flicker. */
function useSteadyMost(most: number, live: boolean): number {
  const held = useRef({ most: 0, at: 0 });
  const now = Date.now();
  if (!live || most >= held.current.most || now - held.current.at > 10_000) held.current = { most, at: now };
  return held.current.most;
}

/** Moves the cursor to the highest cell of each column in turn, beginning with the largest numbers in view. */
function useSlowest(grid: Grid, { setCursor, pause, index }: PanelProps): (next: boolean) => void {
  const at = useRef(0);
  return (next) => {
    const height = grid.rows.edges.length - 1;
    const order = grid.columns
      .flatMap((column, place) => {
        for (let row = height - 1; row >= 0; row -= 1)
          if (grid.counts[place * height + row]! > 0) return [{ second: column.from, row }];
        return [];
      })
      .sort((a, b) => b.row - a.row || b.second - a.second);
    at.current = next ? (at.current + 1) % Math.max(order.length, 1) : 0;
    const found = order[at.current];
    if (!found) return;
    pause();
    setCursor({ ...found, panel: index });
  };
}

/** Handles keys if the cursor is in this panel: the arrow keys move the cursor, and `other` handles all other
 *  keys. */
function useCursorKeys(
  { cursor, index, setCursor, view }: PanelProps,
  { columns }: Table,
  rows: number,
  other: (key: string, from: Cursor, shift: boolean) => boolean,
): void {
  useKeys((key, event) => {
    if ((cursor?.panel ?? 0) !== index || columns.length === 0) return false;
    const step = view.step * (event.shiftKey ? 10 : 1);
    const from = cursor ?? { second: view.to - view.step, row: Math.floor(rows / 2), panel: index };
    const move = (second: number, row: number): boolean => {
      setCursor({
        panel: index,
        second: Math.min(view.to - view.step, Math.max(view.from, second)),
        row: Math.min(rows - 1, Math.max(0, row)),
      });
      return true;
    };
    if (key === "ArrowLeft") return move(from.second - step, from.row);
    if (key === "ArrowRight") return move(from.second + step, from.row);
    if (key === "ArrowUp") return move(from.second, from.row + 1);
    if (key === "ArrowDown") return move(from.second, from.row - 1);
    return other(key, from, event.shiftKey);
  });
}

interface Label {
  share: number;
  words: string;
}

function Gutter({ labels, flag, low }: { labels: Label[]; flag: Label | null; low?: boolean }) {
  return (
    <div class={`gutter ${low ? "low" : ""}`} aria-hidden="true">
      {labels.map(({ share, words }) => (
        <span key={words} style={{ bottom: `${share * 100}%` }}>
          {words}
        </span>
      ))}
      {flag && (
        <span class="flag" style={{ bottom: `${flag.share * 100}%` }}>
          {flag.words}
        </span>
      )}
    </div>
  );
}

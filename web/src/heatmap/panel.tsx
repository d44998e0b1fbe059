import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Feed } from "../model/feed";
import { OPS, written } from "../model/question";
import { useKeys, useSize } from "../ui/hooks";
import { timeLines } from "../ui/ruler";
import { type Cursor, isServed } from "../views/worksheet";
import { clock, cut, latency, lasting, percent, plural, roundLatency, thousands } from "../words";
import { Breakdown, Margin, hueOf } from "./beside";
import { Card } from "./card";
import { type Dimension, type Figures, type Grid, type Question, type View, type YScale, figuresOf, makeGrid } from "./grid";
import { type ColourScale, paint, yLines } from "./paint";

interface PanelProps {
  index: number;
  feed: Feed;
  question: Question;
  view: View;
  dark: boolean;
  live: boolean;
  cursor: Cursor | null;
  setCursor: (cursor: Cursor | null) => void;
  pause: () => void;
  change: (next: Question | null) => void;
  add: (next: Question) => void;
  showSecond: (second: number) => void;
}

const COLOURS: ColourScale[] = ["log", "linear", "rank"];

export function Panel(props: PanelProps) {
  const { feed, question, view, dark, cursor, index } = props;
  const [yScale, setYScale] = useState<YScale>("log");
  const [colour, setColour] = useState<ColourScale>("log");
  const [enhance, setEnhance] = useState(false);
  const [by, setBy] = useState<Dimension>("op");
  const [chosen, setChosen] = useState<string[]>([]);
  const [pinned, setPinned] = useState(false);
  const past = feed.past!;
  const grid = useMemo(
    () => makeGrid(past, feed.layout!, question, view, yScale, by, chosen),
    [written(question), view.from, view.to, view.step, yScale, by, chosen.join("\n"), past.to, past.device(question.device).readFrom],
  );
  const most = useSteadyMost(grid.most, props.live);
  const figures = cursor ? figuresOf(grid, Math.floor((cursor.second - view.from) / view.step), cursor.panel === index ? cursor.row : 0) : null;
  const mine = cursor !== null && cursor.panel === index;
  const slowest = useSlowest(grid, props);
  usePanelKeys(props, grid, { slowest, pin: () => setPinned(!pinned), setYScale, setColour, setEnhance, unpin: () => setPinned(false) });
  return (
    <section class="panel" aria-label={sentence(question, by)}>
      <Title {...props} by={by} setBy={(next) => { setBy(next); setChosen([]); }} most={most} dark={dark} colour={colour} yScale={yScale}
        turnColour={() => setColour(after(COLOURS, colour))} turnScale={() => setYScale(yScale === "log" ? "linear" : "log")} slowest={slowest} />
      <div class="plot-row">
        <Gutter grid={grid} row={mine ? cursor.row : null} />
        <Plot {...props} grid={grid} colour={colour} most={most} enhance={enhance} hues={chosen.map((name) => hueOf(name, dark))} pinned={pinned} pin={setPinned}>
          {mine && figures && <Card feed={feed} grid={grid} figures={figures} question={question} at={(cursor.second - view.from) / (view.to - view.from)} pinned={pinned} />}
        </Plot>
        <Margin grid={grid} />
        <Breakdown grid={grid} by={by} chosen={chosen} choose={setChosen} dark={dark} at={cursor ? Math.floor((cursor.second - view.from) / view.step) : null}
          only={(value) => props.change({ ...question, [by]: value })} />
      </div>
      <State feed={feed} question={question} grid={grid} live={props.live} />
      <p class="reader" aria-live="polite">{mine && figures && figures.count > 0 && spoken(feed, figures)}</p>
    </section>
  );
}

function after<T>(list: T[], one: T): T {
  return list[(list.indexOf(one) + 1) % list.length]!;
}

export function sentence(question: Question, by: Dimension): string {
  const parts = [question.op && `of type ${question.op}`, question.client && `of client ${question.client}`, `on ${question.device}`];
  return `${question.layer === "disk" ? "Disk" : "Volume"} operations ${parts.filter(Boolean).join(", ")}, by latency, listed by ${by === "op" ? "type" : by}`;
}

function spoken(feed: Feed, figures: Figures): string {
  const range = figures.to === null ? `${latency(figures.from)} and above` : `${latency(figures.from)} to ${latency(figures.to)}`;
  return `${clock(feed.past!.wall(figures.column.from))}, ${range}, ${plural(figures.count, "I/O")}, ${percent(figures.count / figures.column.count)} of the column`;
}

/** The largest count: it grows at once and shrinks after ten seconds, so that the colours do not flicker. */
function useSteadyMost(most: number, live: boolean): number {
  const held = useRef({ most: 0, at: 0 });
  const now = Date.now();
  if (!live || most >= held.current.most || now - held.current.at > 10_000) held.current = { most, at: now };
  return held.current.most;
}

/** Steps through the slowest cells of the view, the slowest first. */
function useSlowest(grid: Grid, { setCursor, pause, index }: PanelProps): (next: boolean) => void {
  const at = useRef(0);
  return (next) => {
    const height = grid.rows.edges.length - 1;
    const order = grid.columns.flatMap((column, place) => {
      for (let row = height - 1; row >= 0; row -= 1) if (grid.counts[place * height + row]! > 0) return [{ second: column.from, row }];
      return [];
    }).sort((a, b) => b.row - a.row || b.second - a.second);
    at.current = next ? (at.current + 1) % Math.max(order.length, 1) : 0;
    const found = order[at.current];
    if (!found) return;
    pause();
    setCursor({ ...found, panel: index });
  };
}

interface PanelDeeds {
  slowest: (next: boolean) => void;
  pin: () => void;
  unpin: () => void;
  setYScale: (turn: (old: YScale) => YScale) => void;
  setColour: (turn: (old: ColourScale) => ColourScale) => void;
  setEnhance: (turn: (old: boolean) => boolean) => void;
}

function usePanelKeys(props: PanelProps, grid: Grid, deeds: PanelDeeds): void {
  const { cursor, index, setCursor, view } = props;
  useKeys((key, event) => {
    if ((cursor?.panel ?? 0) !== index) return false;
    const rows = grid.rows.edges.length - 1;
    const step = view.step * (event.shiftKey ? 10 : 1);
    const from = cursor ?? { second: view.to - view.step, row: Math.floor(rows / 2), panel: index };
    const move = (second: number, row: number): void => setCursor({
      panel: index,
      second: Math.min(view.to - view.step, Math.max(view.from, second)),
      row: Math.min(rows - 1, Math.max(0, row)),
    });
    if (key === "ArrowLeft") move(from.second - step, from.row);
    else if (key === "ArrowRight") move(from.second + step, from.row);
    else if (key === "ArrowUp") move(from.second, from.row + 1);
    else if (key === "ArrowDown") move(from.second, from.row - 1);
    else if (key === "Enter") deeds.pin();
    else if (key === "Escape") { deeds.unpin(); setCursor(null); }
    else if (key === "m") deeds.slowest(false);
    else if (key === "n") deeds.slowest(true);
    else if (key === "E" || key === "e") deeds.setEnhance((old) => !old);
    else if (key === "y") deeds.setYScale((old) => (old === "log" ? "linear" : "log"));
    else if (key === "c") deeds.setColour((old) => after(COLOURS, old));
    else return false;
    return true;
  });
}

interface TitleProps extends PanelProps {
  by: Dimension;
  setBy: (by: Dimension) => void;
  most: number;
  colour: ColourScale;
  yScale: YScale;
  turnColour: () => void;
  turnScale: () => void;
  slowest: (next: boolean) => void;
}

function Title({ feed, question, change, add, by, setBy, most, colour, yScale, turnColour, turnScale, slowest }: TitleProps) {
  const ops = feed.status?.[question.layer === "disk" ? "disks" : "volumes"].find((one) => one.name === question.device)?.ops ?? [];
  const busy = OPS.filter((op) => op !== question.op && ops.some((one) => one.op === op && one.completed > 0));
  return (
    <header class="panel-title">
      <h2>{question.layer === "disk" ? "Disk" : "Volume"} operations</h2>
      <span class="chip">on <b title={question.device}>{cut(question.device, 24)}</b><button aria-label={`Close ${question.device}`} onClick={() => change(null)}>×</button></span>
      {question.op !== null && <span class="chip">of type <b>{question.op}</b><button aria-label="All types" onClick={() => change({ ...question, op: null })}>×</button></span>}
      {question.client !== null && <span class="chip">of client <b title={question.client}>{cut(question.client, 20)}</b><button aria-label="All clients" onClick={() => change({ ...question, client: null })}>×</button></span>}
      <span class="breaks">broken down by <b>latency</b>, listed
        <label> by <select aria-label="Listed by" value={by} onChange={(event) => setBy(event.currentTarget.value as Dimension)}>
          <option value="op">type</option>
          <option value="client">client</option>
        </select></label>
      </span>
      {question.op === null && busy.length > 1 && (
        <span class="also">Ask also {busy.slice(0, 3).map((op) => <button key={op} class="link" onClick={() => add({ ...question, op })}>of {op}s</button>)}</span>
      )}
      <span class="space" />
      <button class="link slowest" title="Go to the slowest (m), the next (n)" onClick={() => slowest(false)}>slowest</button>
      <button class="link" title="Scale of latency (y)" onClick={turnScale}>{yScale}</button>
      <span class="ramp"><span>1</span><i class="ramp-strip" aria-hidden="true" /><span>{thousands(Math.max(most, 1))} I/Os,</span><button class="link" title="Scale of colour (c)" onClick={turnColour}>{colour}</button></span>
    </header>
  );
}

function Gutter({ grid, row }: { grid: Grid; row: number | null }) {
  const rows = grid.rows.edges.length - 1;
  return (
    <div class="gutter" aria-hidden="true">
      {yLines(grid).map(({ ns, share }) => <span key={ns} style={{ bottom: `${share * 100}%` }}>{roundLabel(grid, ns)}</span>)}
      {row !== null && <span class="flag" style={{ bottom: `${((row + 0.5) / rows) * 100}%` }}>{latency(grid.rows.edges[row]!)}</span>}
    </div>
  );
}

function roundLabel(grid: Grid, ns: number): string {
  if (ns === 0) return "0";
  return grid.rows.scale === "log" ? roundLatency(10 ** Math.round(Math.log10(ns))) : latency(ns);
}

interface PlotProps extends PanelProps {
  grid: Grid;
  colour: ColourScale;
  most: number;
  enhance: boolean;
  hues: string[];
  pinned: boolean;
  pin: (pinned: boolean) => void;
  children: preact.ComponentChildren;
}

function Plot({ feed, question, grid, view, dark, colour, most, enhance, hues, cursor, index, setCursor, pause, pinned, pin, children }: PlotProps) {
  const [ref, { width, height }] = useSize<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  const past = feed.past!;
  const lines = timeLines(past, view, width);
  useEffect(() => {
    const element = canvas.current;
    if (!element || width === 0) return;
    const ratio = devicePixelRatio;
    if (element.width !== Math.round(width * ratio)) element.width = Math.round(width * ratio);
    if (element.height !== Math.round(height * ratio)) element.height = Math.round(height * ratio);
    paint(element, grid, { dark, colour, most, enhance, hues, everySeconds: lines.every, firstSecond: lines.first });
  }, [grid, width, height, dark, colour, most, enhance, hues.join(" ")]);
  const rows = grid.rows.edges.length - 1;
  const point = (event: PointerEvent): Cursor => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const column = Math.floor(((event.clientX - box.left) / box.width) * grid.columns.length);
    const row = Math.floor((1 - (event.clientY - box.top) / box.height) * rows);
    return {
      panel: index,
      second: view.from + Math.min(grid.columns.length - 1, Math.max(0, column)) * view.step,
      row: Math.min(rows - 1, Math.max(0, row)),
    };
  };
  const cell = cursor && { left: `${((cursor.second - view.from) / (view.to - view.from)) * 100}%`, width: `${(view.step / (view.to - view.from)) * 100}%` };
  return (
    <div class="plot" ref={ref} tabIndex={0} role="application" aria-label={`Heat map: ${sentence(question, "op")}. Arrow keys move the cursor.`} data-columns={grid.columns.length} data-count={grid.all.count}
      onPointerMove={(event) => pinned || setCursor(point(event))}
      onPointerLeave={() => pinned || setCursor(null)}
      onClick={(event) => { setCursor(point(event as unknown as PointerEvent)); pin(!pinned); pause(); }}>
      <canvas ref={canvas} aria-hidden="true" />
      {cell && cursor.second >= view.from && <i class="cursor" style={cell} />}
      {cell && cursor.panel === index && <i class="cell" style={{ ...cell, bottom: `${(cursor.row / rows) * 100}%`, height: `${100 / rows}%` }} />}
      {children}
    </div>
  );
}

/** What the picture does not show by itself: empty, loading, missing, idle. */
function State({ feed, question, grid, live }: { feed: Feed; question: Question; grid: Grid; live: boolean }) {
  return <p class="state" aria-live="polite">{stateWords(feed, question, grid, live).map((words) => <span key={words}>{words} </span>)}</p>;
}

function stateWords(feed: Feed, question: Question, grid: Grid, live: boolean): string[] {
  const words: string[] = [];
  const past = feed.past!;
  const count = (known: string): number => grid.columns.filter((column) => column.known === known).length * grid.view.step;
  if (!isServed(feed, question.device)) return [`This worksheet asks for ${question.device}. It is not part of this lab now.`];
  if (feed.contact.kind === "lost") words.push(`No contact: the picture ends at ${clock(past.wall(past.to))}.`);
  if (past.device(question.device).reading) words.push(`Reading what the daemon remembers of ${question.device}…`);
  if (count("missing") > 0) words.push(`Hatched: ${lasting(count("missing") * 1e9)} not recorded.`);
  if (count("before") > 0) words.push("Flat: before the daemon’s memory begins.");
  const dropped = grid.columns.reduce((sum, column) => sum + column.dropped, 0);
  if (dropped > 0) words.push(`Ticks: ${plural(dropped, "event")} dropped, counts are too low.`);
  return words.concat(restWords(feed, question, grid, live));
}

function restWords(feed: Feed, question: Question, grid: Grid, live: boolean): string[] {
  const past = feed.past!;
  const device = [...feed.status!.disks, ...feed.status!.volumes].find((one) => one.name === question.device)!;
  const oldest = device.oldest[0];
  if (grid.all.count > 0) {
    const last = grid.columns.findLast((column) => column.count > 0)!;
    const idle = live && past.to - last.from > 5 && feed.contact.kind === "live";
    if (idle) return [`Idle since ${clock(past.wall(last.from + 1))}. ${device.in_flight === 0 ? "Nothing waits." : ""}`];
    return oldest && oldest.age_ns > 2e9 ? [`${thousands(device.in_flight)} in flight, the oldest for ${latency(oldest.age_ns)}.`] : [];
  }
  if (oldest) return [`No I/O has ended. ${thousands(device.in_flight)} in flight, the oldest for ${latency(oldest.age_ns)}.`];
  if (device.ops.some((op) => op.completed > 0)) return ["No such I/O in view."];
  const uri = device.uris[0];
  const clients = device.clients.length === 0 ? "No client is connected." : `${plural(device.clients.length, "client")} connected.`;
  return [`No I/O yet. ${clients}`, ...(uri ? [`A load: dashpot load '${uri}'`] : [])];
}


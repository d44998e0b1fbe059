import { useEffect, useMemo, useState } from "preact/hooks";
import type { Question, View } from "../heatmap/grid";
import { Panel } from "../heatmap/panel";
import type { Feed } from "../model/feed";
import { readQuestion, written } from "../model/question";
import { type Route, go } from "../route";
import { useKeys, useSize } from "../ui/hooks";
import { EventLane, Ruler } from "../ui/ruler";
import { SPANS, TimeBar } from "../ui/timebar";

/** The moment under the cursor, for all panels. */
export interface Cursor {
  second: number;
  panel: number;
  row: number;
}

const DEFAULT_SPAN = 300;
const SPAN_MIN = 30;
const SPAN_MAX = 3_600;

export function Worksheet({ feed, route, dark }: { feed: Feed; route: Route; dark: boolean }) {
  const past = feed.past!;
  const [ref, { width }] = useSize<HTMLDivElement>();
  const [pausedAt, pause] = useState<number | null>(null);
  const [cursor, setCursor] = useState<Cursor | null>(null);
  const asked = route.options.getAll("s");
  const panels = useMemo(() => (asked.length > 0 ? asked.map(readQuestion) : firstQuestion(feed)), [asked.join(" "), feed.status === null]);
  const span = Math.min(SPAN_MAX, Math.max(SPAN_MIN, Math.round(Number(route.options.get("span"))) || DEFAULT_SPAN));
  const view = viewOf(pausedAt ?? past.to, span, width);
  useReading(feed, panels, view.from);

  const setSpan = (next: number): void => {
    const options = new URLSearchParams(route.options);
    options.set("span", String(Math.min(SPAN_MAX, Math.max(SPAN_MIN, Math.round(next)))));
    go({ view: "worksheet", options }, true);
  };
  const setPanels = (next: (Question | string)[]): void => {
    const options = new URLSearchParams();
    for (const one of next) options.append("s", typeof one === "string" ? one : written(one));
    if (span !== DEFAULT_SPAN) options.set("span", String(span));
    go({ view: "worksheet", options });
  };
  const move = (seconds: number): void => {
    const to = (pausedAt ?? past.to) + seconds;
    pause(to >= past.to ? null : Math.max(to, past.from + Math.min(span, 30)));
  };
  const toggle = (): void => pause(pausedAt === null ? past.to : null);
  useKeys((key) => {
    const spanOf = SPANS.find((one) => one.key === key);
    if (spanOf) setSpan(spanOf.seconds);
    else if (key === " ") toggle();
    else if (key === "[") move(-span / 2);
    else if (key === "]") move(span / 2);
    else if (key === "0") pause(null);
    else if (key === "+" || key === "=") setSpan(span / 2);
    else if (key === "-") setSpan(span * 2);
    else return false;
    return true;
  });
  return (
    <main class="worksheet">
      <h1 class="reader">Worksheet</h1>
      <TimeBar feed={feed} view={view} paused={pausedAt !== null} toggle={toggle} move={move} now={() => pause(null)} span={span} setSpan={setSpan} />
      <div class="clock-lane">
        <div class="across" ref={ref}>
          <Ruler past={past} view={view} cursor={cursor} width={width} />
          <EventLane feed={feed} view={view} />
        </div>
      </div>
      {panels.map((question, at) => (
        typeof question === "string"
          ? <BadPanel key={`bad ${at}`} text={asked[at] ?? ""} why={question} drop={() => setPanels(panels.map((one, index) => (typeof one === "string" ? asked[index]! : one)).filter((_, index) => index !== at))} />
          : (
            <Panel key={written(question)} index={at} feed={feed} question={question} view={view} dark={dark} live={pausedAt === null}
              cursor={cursor} setCursor={setCursor} pause={() => pausedAt === null && pause(past.to)}
              change={(next) => setPanels(panels.flatMap((one, index) => (index === at ? (next ? [next] : []) : [typeof one === "string" ? asked[index]! : one])))}
              add={(next) => setPanels([...panels.slice(0, at + 1), next, ...panels.slice(at + 1)])}
              showSecond={(second) => pause(Math.min(past.to, Math.round(second + span / 2)))} />
          )
      ))}
    </main>
  );
}

/** With nothing asked, the first thing that has clients: a volume, else a disk. */
function firstQuestion(feed: Feed): Question[] {
  const { status } = feed;
  const volume = status?.volumes.find((one) => one.clients.length > 0);
  if (volume) return [{ layer: "volume", device: volume.name, op: null, client: null }];
  const disk = status?.disks.find((one) => one.clients.length > 0) ?? status?.disks.find((one) => one.pool === null) ?? status?.disks[0];
  return disk ? [{ layer: "disk", device: disk.name, op: null, client: null }] : [];
}

/** The view that ends with a second: columns of whole seconds, each at least a pixel wide. */
function viewOf(end: number, span: number, width: number): View {
  const step = Math.max(1, Math.ceil(span / Math.max(width, 200)));
  const to = Math.ceil(end / step) * step;
  return { from: to - Math.ceil(span / step) * step, to, step };
}

/** Reads the past of the devices in view, where the page has not read it. */
function useReading(feed: Feed, panels: (Question | string)[], from: number): void {
  const devices = panels.flatMap((one) => (typeof one === "string" ? [] : [one.device]));
  useEffect(() => {
    const past = feed.past!;
    for (const name of devices) {
      if (isServed(feed, name) && past.device(name).readFrom > from) void feed.readPast(name);
    }
  }, [devices.join(" "), from, feed.contact.kind]);
}

export function isServed(feed: Feed, name: string): boolean {
  const { status } = feed;
  return [...(status?.disks ?? []), ...(status?.volumes ?? [])].some((one) => one.name === name);
}

function BadPanel({ text, why, drop }: { text: string; why: string; drop: () => void }) {
  return (
    <section class="panel bad">
      <p>This link asks for “{text}”. {why}</p>
      <button onClick={drop}>Open without this panel</button>
    </section>
  );
}

import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import type { Cursor, View } from "../heatmap/grid";
import { Panel, useTops } from "../heatmap/panel";
import type { Feed } from "../model/feed";
import { LAYERS, readStatistic, type Statistic, written } from "../model/statistic";
import { go, type Route } from "../route";
import { AddStatistic } from "../ui/add";
import { useKeys, useSize } from "../ui/hooks";
import { EventLane, Ruler } from "../ui/ruler";
import { SPANS, TimeBar } from "../ui/timebar";
import { saveAsHtml } from "./save";

const DEFAULT_SPAN = 300;
const SPAN_MIN = 10;
const SPAN_MAX = 30 * 86_400;
/** The longest view whose columns are whole seconds. The columns of longer views are whole minutes, which daemons
 *  remember longer than seconds, or hours. */
const SECONDS_MAX = 3_600;

export function Worksheet({ feed, route, dark }: { feed: Feed; route: Route; dark: boolean }) {
  const past = feed.past!;
  const [ref, { width }] = useSize<HTMLDivElement>();
  const [pausedAt, pause] = useState<number | null>(null);
  const [cursor, setCursor] = useState<Cursor | null>(null);
  const asked = route.options.getAll("s");
  const [adding, setAdding] = useState(false);
  const panels = useMemo(
    () => (asked.length > 0 ? asked.map(readStatistic) : [firstStatistic(feed)]),
    [asked.join(" "), feed.source === null],
  );
  const span = Math.min(SPAN_MAX, Math.max(SPAN_MIN, Math.round(Number(route.options.get("span"))) || defaultSpan(feed)));
  const view = viewOf(pausedAt ?? past.to, span, width);
  const names = panels.flatMap((one) => (typeof one === "string" ? [] : [written(one)]));
  // The page asks before the browser paints, so that the daemon counts in the meantime.
  useLayoutEffect(
    () => feed.follower!.follow(names, view.from, stepOf(view)),
    [names.join(" "), view.from, view.step, feed.contact.kind],
  );

  const top = useTops(
    feed,
    panels.filter((one) => typeof one !== "string"),
    view,
  );

  const setSpan = (next: number): void => {
    const options = new URLSearchParams(route.options);
    options.set("span", String(Math.min(SPAN_MAX, Math.max(SPAN_MIN, Math.round(next)))));
    go({ view: "worksheet", options }, true);
  };
  const setPanels = (next: (Statistic | string)[]): void => {
    const options = new URLSearchParams();
    for (const one of next) options.append("s", typeof one === "string" ? one : written(one));
    if (span !== defaultSpan(feed)) options.set("span", String(span));
    go({ view: "worksheet", options });
  };
  const move = (seconds: number): void => {
    const to = (pausedAt ?? past.to) + seconds;
    pause(to >= past.to ? null : Math.max(to, past.from + Math.min(span, 30)));
  };
  const toggle = (): void => pause(pausedAt === null ? past.to : null);
  const texts = panels.map((one, at) => (typeof one === "string" ? asked[at]! : one));
  const replace = (at: number, ...next: Statistic[]): void => setPanels([...texts.slice(0, at), ...next, ...texts.slice(at + 1)]);
  const addAfter = (at: number, next: Statistic): void => setPanels([...texts.slice(0, at + 1), next, ...texts.slice(at + 1)]);
  useKeys((key) => {
    const spanOf = SPANS.find((one) => one.key === key);
    if (spanOf) setSpan(spanOf.seconds);
    else if (key === " ") toggle();
    else if (key === "[") move(-span / 2);
    else if (key === "]") move(span / 2);
    else if (key === "0") pause(null);
    else if (key === "+" || key === "=") setSpan(span / 2);
    else if (key === "-") setSpan(span * 2);
    else if (key === "a") setAdding(true);
    else return false;
    return true;
  });
  return (
    <main class="worksheet">
      <h1 class="reader">Worksheet</h1>
      <TimeBar
        feed={feed}
        view={view}
        paused={pausedAt !== null}
        toggle={toggle}
        move={move}
        now={() => pause(null)}
        span={span}
        setSpan={setSpan}
        save={() =>
          saveAsHtml(
            feed,
            panels.filter((one) => typeof one !== "string"),
            view,
          )
        }
      />
      <div class="clock-lane">
        <div class="across" ref={ref}>
          <Ruler past={past} view={view} cursor={cursor} width={width} />
          <EventLane feed={feed} view={view} />
        </div>
      </div>
      {panels.map((statistic, at) =>
        typeof statistic === "string" ? (
          <BadPanel key={`bad ${at}`} text={asked[at] ?? ""} why={statistic} drop={() => replace(at)} />
        ) : (
          <Panel
            key={`${at} ${written(statistic)}`}
            index={at}
            feed={feed}
            statistic={statistic}
            view={view}
            dark={dark}
            live={pausedAt === null}
            top={top}
            cursor={cursor}
            setCursor={setCursor}
            pause={() => pausedAt === null && pause(past.to)}
            change={(next) => (next ? replace(at, next) : replace(at))}
            add={(next) => addAfter(at, next)}
          />
        ),
      )}
      {adding ? (
        <AddStatistic
          feed={feed}
          add={(next) => {
            setAdding(false);
            addAfter(panels.length - 1, next);
          }}
          close={() => setAdding(false)}
        />
      ) : (
        <p class="add-row">
          <button onClick={() => setAdding(true)}>Add statistic…</button>
        </p>
      )}
    </main>
  );
}

/** The statistic to show if the address has none: the latencies of volumes, if clients use any, or else of disks. */
function firstStatistic(feed: Feed): Statistic {
  const hasVolumes =
    feed.status === null ? feed.namesOf("volume").length > 0 : feed.status.volumes.some((one) => one.clients.length > 0);
  const others = LAYERS.filter((one) => one !== "volume" && feed.namesOf(one).length > 0);
  return { layer: hasVolumes ? "volume" : (others[0] ?? "disk"), metric: "latency", conditions: [], by: "op" };
}

/** The time span in view at first: five minutes or, for a recording or a simulation, all of its time, up to
 *  an hour. */
function defaultSpan({ source, past }: Feed): number {
  const lasts = past!.to - (past!.spans[0]?.from ?? past!.to);
  const whole = source?.kind === "recording" || source?.kind === "simulation";
  return whole ? Math.min(3_600, Math.max(SPAN_MIN, lasts)) : DEFAULT_SPAN;
}

/** The length of the columns that the page reads for a view. For short columns, the page reads single
 *  seconds, which arrive live and are not many more. */
function stepOf({ step }: View): number {
  return step >= 5 ? step : 1;
}

/** The view that ends with this second. Columns are whole seconds, minutes or hours, and at least a pixel wide. */
function viewOf(end: number, span: number, width: number): View {
  const least = Math.max(1, Math.ceil(span / Math.max(width, 200)));
  const unit = span <= SECONDS_MAX ? 1 : least <= 1_800 ? 60 : 3_600;
  const step = Math.ceil(least / unit) * unit;
  const to = Math.ceil(end / step) * step;
  return { from: to - Math.ceil(span / step) * step, to, step };
}

function BadPanel({ text, why, drop }: { text: string; why: string; drop: () => void }) {
  return (
    <section class="panel bad">
      <p>
        This link asks for “{text}”. {why}
      </p>
      <button onClick={drop}>Open without this panel</button>
    </section>
  );
}

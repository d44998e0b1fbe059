// The differences of a rectangle: the daemon compares the I/Os in the rectangle with all I/Os in view, by every fact
// about them.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Schemas } from "../api";
import type { Feed } from "../model/feed";
import { conditionOf, nameOf, type Statistic, withCondition, written } from "../model/statistic";
import { amount, capitalized, clock, cut, lasting, plural, thousands } from "../words";
import { boundsOf, type Grid } from "./grid";
import { IoList } from "./iolist";
import type { Rectangle } from "./plot";

interface DrawerProps {
  feed: Feed;
  statistic: Statistic;
  grid: Grid;
  rectangle: Rectangle;
  change: (next: Statistic | null) => void;
  add: (next: Statistic) => void;
  close: () => void;
  /** Zooms the axis to the numbers of the rectangle. */
  zoom: () => void;
}

type Difference = Schemas["Difference"];

export function Drawer(props: DrawerProps) {
  const { feed, statistic, grid, rectangle, close, zoom } = props;
  const [said, say] = useState<Difference | string | null>(null);
  const [listed, list] = useState(false);
  const heading = useRef<HTMLHeadingElement>(null);
  const unit = feed.follower!.of(written(statistic)).unit;
  const { from: least, to: end } = boundsOf(grid, rectangle.low, rectangle.high - 1);
  const first = Math.max(rectangle.from, grid.view.from);
  useEffect(() => {
    heading.current?.focus();
    const query = new URLSearchParams({
      statistic: written(statistic),
      from_ns: ns(grid.view.from),
      to_ns: ns(grid.view.to),
      begin_ns: ns(first),
      end_ns: ns(rectangle.to),
      least: String(least),
    });
    if (end !== null) query.set("most", String(end - 1));
    feed.api.get<Difference>(`/v1/statistics/diff?${query}`).then(say, (error: Error) => say(error.message));
  }, []);
  const range = end === null ? `${amount(unit, least)} and above` : `${amount(unit, least)} – ${amount(unit, end)}`;
  return (
    <aside class="drawer" aria-label="What is different here?">
      <header>
        <h2 tabIndex={-1} ref={heading}>
          What is different here?
        </h2>
        <span class="space" />
        <button class="plain" aria-label="Close" title="Close (Esc)" onClick={close}>
          ×
        </button>
      </header>
      <p class="note">
        {clock(feed.past!.wall(first))} – {clock(feed.past!.wall(rectangle.to))}, {lasting((rectangle.to - first) * 1e9)}, {range}
        , beside all I/Os in view.{" "}
        <button class="link" title="Zoom the axis to these numbers (v)" onClick={zoom}>
          Zoom to them
        </button>
      </p>
      {said === null && <p>Comparing…</p>}
      {typeof said === "string" && <p class="wrong">{said}.</p>}
      {said !== null && typeof said !== "string" && <Answer {...props} said={said} first={first} />}
      {said !== null &&
        typeof said !== "string" &&
        said.inside.count > 0 &&
        (listed ? (
          <IoList feed={feed} statistic={statistic} from={first} to={rectangle.to} least={least} end={end} />
        ) : (
          <button onClick={() => list(true)}>List the I/Os</button>
        ))}
    </aside>
  );
}

function ns(second: number): string {
  return `${second}000000000`;
}

function Answer({ feed, statistic, grid, said, change, add }: DrawerProps & { said: Difference; first: number }) {
  const share = said.view.time_ns === 0 ? 0 : Math.round((100 * said.inside.time_ns) / said.view.time_ns);
  const [top] = said.differs;
  const since = said.since_ns / 1e9;
  return (
    <>
      <p class="finding">{finding(said)}</p>
      <p>
        {plural(said.inside.count, "I/O")} of {thousands(said.view.count)} in view, {share} % of the time that they waited
        {said.spent[0]
          ? `, mostly ${said.spent
              .slice(0, 2)
              .map((one) => `${one.wait} ${Math.round(one.percent)} %`)
              .join(", ")}`
          : ""}
        .
      </p>
      {since > grid.view.from && (
        <p class="note">Single I/Os are remembered since {clock(feed.past!.wall(since))}; earlier ones are not compared.</p>
      )}
      {said.differs.map((one) => (
        <section key={one.dimension}>
          <h3>
            {nameOf(one.dimension)} <small>differs by {Math.round(one.points)} points</small>
          </h3>
          <table class="bars">
            <thead class="reader">
              <tr>
                <th scope="col">value</th>
                <th scope="col">shares</th>
                <th scope="col">of the time waited here</th>
                <th scope="col">of the I/Os in view</th>
              </tr>
            </thead>
            <tbody>
              {one.values.map((value) => (
                <tr key={value.value}>
                  <th scope="row" title={value.value}>
                    {cut(value.value, 22)}
                  </th>
                  <td class="bar">
                    <i class="here" style={{ width: `${value.inside_percent}%` }} />
                    <i class="outside" style={{ width: `${value.view_percent}%` }} />
                  </td>
                  <td class="here-words">{Math.round(value.inside_percent)} %</td>
                  <td>{Math.round(value.view_percent)} %</td>
                </tr>
              ))}
            </tbody>
          </table>
          {one === top && (
            <Steps statistic={statistic} dimension={one.dimension} value={one.values[0]?.value ?? ""} change={change} add={add} />
          )}
        </section>
      ))}
      {said.differs.length > 0 && (
        <p class="note">
          Bars: <b class="here-words">share of the time waited here</b>, above the share of the I/Os in view.
        </p>
      )}
      {said.alike.length > 0 && !said.too_few && (
        <p>
          <b>Not different:</b> {said.alike.map(nameOf).join(", ")}.
        </p>
      )}
    </>
  );
}

/** The answer as a sentence that can be read aloud. */
function finding(said: Difference): string {
  if (said.inside.count === 0) return "No I/O is in the rectangle.";
  if (said.too_few) return `Too few I/Os to tell (${said.inside.count}).`;
  const [one, other] = said.differs;
  const value = one?.values[0];
  if (!one || !value) return "These I/Os are like all others in view.";
  const next = other?.values[0]
    ? `; ${nameOf(other.dimension)} ${other.values[0].value} has ${Math.round(other.values[0].inside_percent)} %`
    : "";
  return `${capitalized(nameOf(one.dimension))} ${value.value} has ${Math.round(value.inside_percent)} % of the time waited here, and ${Math.round(value.view_percent)} % of the I/Os in view${next}.`;
}

function Steps({
  statistic,
  dimension,
  value,
  change,
  add,
}: {
  statistic: Statistic;
  dimension: string;
  value: string;
  change: (next: Statistic | null) => void;
  add: (next: Statistic) => void;
}) {
  const condition = conditionOf(dimension, value);
  if (condition === null) return null;
  const other = condition.startsWith(`${dimension}=`) ? condition.replace("=", "!=") : null;
  return (
    <p class="steps">
      <button class="link" onClick={() => change(withCondition(statistic, condition))}>
        only {cut(value, 16)}
      </button>
      {other && (
        <button class="link" onClick={() => change(withCondition(statistic, other))}>
          without
        </button>
      )}
      <button class="link" onClick={() => add({ ...statistic, by: dimension })}>
        break down
      </button>
    </p>
  );
}

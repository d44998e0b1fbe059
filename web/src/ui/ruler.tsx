import type { Cursor, View } from "../heatmap/grid";
import type { Feed, Happening } from "../model/feed";
import type { Past } from "../model/past";
import { clock, cut, UNKNOWN, zoneOffset } from "../words";

const STEPS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200];
/** A label takes about this many pixels. */
const LABEL_PX = 78;

/** The places of the time lines: whole steps of the wall clock. */
export function timeLines(past: Past, view: View, width: number): { first: number; every: number } {
  const labels = Math.max(2, width / LABEL_PX);
  const every = STEPS.find((step) => (view.to - view.from) / step <= labels) ?? 86_400;
  const zoneMs = zoneOffset(past.wall(view.to)) * 60_000;
  const wall = (past.wall(view.from) - zoneMs) / 1_000;
  return { first: view.from + (Math.ceil(wall / every) * every - wall), every };
}

export function share(view: View, second: number): number {
  return (second - view.from) / (view.to - view.from);
}

export function Ruler({ past, view, cursor, width }: { past: Past; view: View; cursor: Cursor | null; width: number }) {
  const { first, every } = timeLines(past, view, width);
  const marks: number[] = [];
  for (let second = first; second < view.to; second += every) marks.push(second);
  return (
    <div class="ruler" aria-hidden="true">
      {marks.map((second) => {
        const at = share(view, second);
        return at < 0.03 || at > 0.97 || clock(past.wall(second)) === UNKNOWN ? null : (
          <span key={Math.round(past.wall(second))} style={{ left: `${at * 100}%` }}>
            {clock(past.wall(second))}
          </span>
        );
      })}
      {cursor && share(view, cursor.second) >= 0 && (
        <span class="flag" style={{ left: `${share(view, cursor.second + view.step / 2) * 100}%` }}>
          {clock(past.wall(cursor.second))}
        </span>
      )}
    </div>
  );
}

/** Shows each rule as a bracket, from when it was armed until it ended, and other events. */
export function EventLane({ feed, view }: { feed: Feed; view: View }) {
  const seen = [...feed.happenings]
    .sort((a, b) => a.second - b.second)
    .filter((one) => (one.until ?? view.to) >= view.from && one.second <= view.to);
  return (
    <div class="lane">
      {seen.map((one, at) => (
        <Bracket key={one.key} happening={one} view={view} next={seen.slice(at + 1).map((other) => other.second)} />
      ))}
    </div>
  );
}

/** A bracket's words end where the next bracket begins. */
function Bracket({ happening, view, next }: { happening: Happening; view: View; next: number[] }) {
  const from = Math.max(0, share(view, happening.second));
  const to = Math.min(1, share(view, happening.until ?? view.to));
  const room = Math.min(to, ...next.map((second) => Math.max(from, share(view, second))));
  const letters = Math.max(0, Math.floor((room - from) * 130));
  const style = { left: `${from * 100}%`, width: happening.kind === "rule" ? `${(to - from) * 100}%` : undefined };
  return (
    <span class={`bracket ${happening.kind} ${happening.until === null ? "open" : ""}`} style={style} title={happening.words}>
      {happening.kind === "note" ? happening.words : letters > 6 && cut(happening.words, letters)}
    </span>
  );
}

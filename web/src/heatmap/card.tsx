import type { Feed } from "../model/feed";
import { amount, clock, percent, plural, thousands } from "../words";
import type { Figures, Grid } from "./grid";

interface CardProps {
  feed: Feed;
  grid: Grid;
  figures: Figures;
  unit: string | null;
  /** The cell's position, as a share of the plot's width. */
  at: number;
  pinned: boolean;
}

/** The figures of the cell under the cursor. */
export function Card({ feed, grid, unit, figures, at, pinned }: CardProps) {
  const { column, count, from, to, below, above } = figures;
  const time = clock(feed.past!.wall(column.from));
  const step = grid.view.step;
  return (
    <div
      class={`card ${at > 0.5 ? "left" : "right"}`}
      style={at > 0.5 ? { right: `calc(${(1 - at) * 100}% + 14px)` } : { left: `calc(${at * 100}% + 20px)` }}
    >
      <p class="card-head">
        <b>{to === null ? `${amount(unit, from)} and above` : `${amount(unit, from)} – ${amount(unit, to)}`}</b> {time}, {step} s{" "}
        <span class="space" /> <small>{pinned ? "Esc lets go" : "Enter pins"}</small>
      </p>
      {column.known === "known" ? (
        <table>
          <tbody>
            <Row
              name="I/Os in this cell"
              value={thousands(count)}
              note={`of ${thousands(column.count)} in this ${step === 1 ? "second" : "column"}`}
            />
            <Row
              name="share of the column"
              value={percent(column.count === 0 ? NaN : count / column.count)}
              note={column.dropped > 0 ? `${plural(column.dropped, "event")} dropped` : ""}
            />
            <Row
              name="at or below"
              value={percent(column.count === 0 ? NaN : below / column.count)}
              note="accumulated from the bottom"
            />
            <Row
              name="at or above"
              value={percent(column.count === 0 ? NaN : above / column.count)}
              note={plural(above, "I/O")}
            />
          </tbody>
        </table>
      ) : (
        <p>{UNKNOWN_WORDS[column.known]}</p>
      )}
    </div>
  );
}

const UNKNOWN_WORDS = {
  known: "",
  before: "This time is not remembered.",
  missing: "Not recorded.",
  unread: "Not read yet.",
  after: "Not over yet.",
};

function Row({ name, value, note }: { name: string; value: string; note: string }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>
        <b>{value}</b>
      </td>
      <td class="note">{note}</td>
    </tr>
  );
}

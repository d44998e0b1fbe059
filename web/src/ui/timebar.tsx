import type { View } from "../heatmap/grid";
import type { Feed } from "../model/feed";
import { clock, lasting, moment, zone } from "../words";

export const SPANS = [
  { key: "1", seconds: 60, words: "1 min" },
  { key: "5", seconds: 300, words: "5 min" },
  { key: "h", seconds: 3_600, words: "1 h" },
  { key: "d", seconds: 86_400, words: "1 d" },
];

interface TimeBarProps {
  feed: Feed;
  view: View;
  paused: boolean;
  span: number;
  toggle: () => void;
  move: (seconds: number) => void;
  now: () => void;
  setSpan: (seconds: number) => void;
  save: () => void;
}

export function TimeBar({ feed, view, paused, span, toggle, move, now, setSpan, save }: TimeBarProps) {
  const past = feed.past!;
  const behind = past.to - view.to;
  const end = feed.hasEnded ? "the end" : "now";
  return (
    <div class="timebar" role="group" aria-label="Time">
      <span class="segments">
        <button aria-pressed={!paused} onClick={() => paused && toggle()}>
          {feed.hasEnded ? "At the end" : "Live"}
        </button>
        <button aria-pressed={paused} onClick={() => paused || toggle()}>
          Paused
        </button>
      </span>
      <button class="plain" aria-label="Back" title="Back ([)" onClick={() => move(-span / 2)}>
        ‹
      </button>
      <button class="plain" aria-label="Forward" title="Forward (])" onClick={() => move(span / 2)}>
        ›
      </button>
      <button class="plain" aria-label={`To ${end}`} title={`To ${end} (0)`} onClick={now}>
        ›|
      </button>
      <span class="rule" />
      <button class="plain" aria-label="Zoom out" title="Zoom out (−)" onClick={() => setSpan(span * 2)}>
        −
      </button>
      <button class="plain" aria-label="Zoom in" title="Zoom in (+)" onClick={() => setSpan(span / 2)}>
        +
      </button>
      <span class="segments spans">
        {SPANS.map((one) => (
          <button key={one.key} aria-pressed={span === one.seconds} onClick={() => setSpan(one.seconds)}>
            {one.words}
          </button>
        ))}
      </span>
      <span class="range">
        <b>
          {moment(past.wall(view.from), past.wall(view.to))} – {clock(past.wall(view.to))}
        </b>{" "}
        {zone()}
        {view.step > 1 && `, ${lasting(view.step * 1e9)} a column`}
        {paused && behind > 0 && `, ${lasting(behind * 1e9)} behind`}
      </span>
      <span class="space" />
      <button class="copy" title="One file with the pictures and their data, which opens without a daemon" onClick={save}>
        Save as HTML
      </button>
      <CopyLink />
    </div>
  );
}

function CopyLink() {
  const copy = (event: MouseEvent): void => {
    const button = event.currentTarget as HTMLButtonElement;
    const done = (words: string): void => {
      button.textContent = words;
      setTimeout(() => (button.textContent = "Copy link"), 2_000);
    };
    navigator.clipboard.writeText(location.href).then(
      () => done("Copied"),
      () => done("Cannot copy"),
    );
  };
  return (
    <button class="copy" title="The link leads to these panels, and contains no token" onClick={copy}>
      Copy link
    </button>
  );
}

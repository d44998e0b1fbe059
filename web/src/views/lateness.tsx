// The lateness of a rule in the last minutes: for every few seconds the range from p50 to p99, on a
// logarithmic axis.

import { useEffect, useState } from "preact/hooks";
import type { Schemas } from "../api";
import type { Feed, Rule } from "../model/feed";
import { clock, latency } from "../words";

const SPAN = 300;
const STEP = 5;
const [LOW, HIGH] = [3, 9];
const HEIGHT = 26;

export function Lateness({ feed, rule }: { feed: Feed; rule: Rule }) {
  const [said, say] = useState<Schemas["Columns"] | null>(null);
  const to = Math.floor(feed.past!.to / STEP) * STEP;
  useEffect(() => {
    const from = Math.max(0, to - SPAN);
    const query = new URLSearchParams({
      statistic: `disk.late[device=${rule.disk}][rule=${rule.id}]`,
      from_ns: `${from}000000000`,
      to_ns: `${to}000000000`,
      step_ns: `${STEP}000000000`,
    });
    feed.api.get<Schemas["Columns"]>(`/v1/statistics/columns?${query}`).then(say, () => say(null));
  }, [to, rule.id]);
  if (said === null) return <span class="note">–</span>;
  const y = (ns: number): number =>
    HEIGHT * (1 - (Math.min(HIGH, Math.max(LOW, Math.log10(Math.max(ns, 1)))) - LOW) / (HIGH - LOW));
  const from = said.to_ns / 1e9 - SPAN;
  return (
    <svg
      class="lateness"
      viewBox={`0 0 ${(SPAN / STEP) * 2} ${HEIGHT}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`lateness from ${clock(feed.past!.wall(from))} on, 1 µs to 1 s`}
    >
      {said.columns.map(({ start_ns: start, parts }) => {
        const numbers = parts[0]?.numbers;
        if (!numbers || numbers.count === 0) return null;
        const [low, high] = [numbers.p50 ?? numbers.min, numbers.p99 ?? numbers.max];
        const x = ((start / 1e9 - from) / STEP) * 2;
        return (
          <rect key={start} x={x} y={y(high)} width="1.5" height={Math.max(1.5, y(low) - y(high))}>
            <title>
              {clock(feed.past!.wall(start / 1e9))}: {latency(low)} to {latency(high)}, {numbers.count} held
            </title>
          </rect>
        );
      })}
    </svg>
  );
}

// The expected effect of a rule, before it is armed: the latencies of the disk's last I/Os as measured, and as the
// engine expects them under the rule.

import { useEffect, useState } from "preact/hooks";
import type { Schemas } from "../api";
import { part } from "../api";
import type { Feed } from "../model/feed";
import { latency, plural, rate, UNKNOWN } from "../words";

type Expectation = Schemas["Expectation"];
type Distribution = Schemas["Distribution"];

/** The page asks the daemon when the fields have not changed for this long. */
const QUIET_MS = 300;
const WIDTH = 360;
const HEIGHT = 84;
/** Five bars for each factor of ten, from 1 µs to 100 s. */
const PER_DECADE = 5;
const BARS = 8 * PER_DECADE;

export function Expected({ feed, disk, rule }: { feed: Feed; disk: string; rule: string }) {
  const [said, say] = useState<Expectation | string | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    const timer = setTimeout(() => {
      feed.api
        .send<Expectation>("POST", `/v1/disks/${part(disk)}/expect`, { rule }, gone.signal)
        .then(say, (error: Error) => gone.signal.aborted || say(error.message));
    }, QUIET_MS);
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [disk, rule]);
  if (said === null) return <p class="note">Asking the engine…</p>;
  if (typeof said === "string") return <p class="note">{said}.</p>;
  if (said.measured.count === 0)
    return <p class="note">No I/O in the last {said.seconds} s, so there is nothing to compute an expectation from.</p>;
  return (
    <figure class="expected">
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT + 16}`}
        role="img"
        aria-label={`Measured: p50 ${latency(said.measured.p50)}. Expected with the rule: p50 ${latency(said.expected.p50)}.`}
      >
        {bars(said.measured, said.buckets).map(
          (share, at) =>
            share > 0 && (
              <rect
                key={at}
                class="measured"
                x={x(at)}
                y={HEIGHT * (1 - share)}
                width={WIDTH / BARS - 1}
                height={HEIGHT * share}
              />
            ),
        )}
        <polyline class="outline" points={outline(bars(said.expected, said.buckets))} />
        <line class="grid" x1="0" x2={WIDTH} y1={HEIGHT} y2={HEIGHT} />
        {["1 µs", "100 µs", "10 ms", "1 s"].map((words, at) => (
          <text key={words} x={x(at * 2 * PER_DECADE)} y={HEIGHT + 13}>
            {words}
          </text>
        ))}
      </svg>
      <table>
        <thead>
          <tr>
            <th scope="col">last {said.seconds} s</th>
            <th scope="col">p50</th>
            <th scope="col">p99</th>
            <th scope="col">max</th>
          </tr>
        </thead>
        <tbody>
          <Figures name="measured" of={said.measured} />
          <Figures name="expected" of={said.expected} mark />
        </tbody>
      </table>
      <p class={isMore(said) ? "wrong" : "note"}>{sentence(said)}</p>
    </figure>
  );
}

function Figures({ name, of, mark }: { name: string; of: Distribution; mark?: boolean }) {
  const max = of.count > 0 ? latency(of.max) : UNKNOWN;
  return (
    <tr>
      <th scope="row" class={mark ? "here-words" : ""}>
        {name}
      </th>
      <td>{latency(of.p50)}</td>
      <td>{latency(of.p99)}</td>
      <td>{max}</td>
    </tr>
  );
}

function x(bar: number): number {
  return (bar / BARS) * WIDTH;
}

/** The height of each bar: the square root of its count, as a share of the largest. */
function bars(of: Distribution, { from }: Schemas["Buckets"]): number[] {
  const counts = new Array<number>(BARS).fill(0);
  of.buckets.forEach((bucket, at) => {
    const bar = Math.floor(Math.log10(Math.max(from[bucket]!, 1_000) / 1_000) * PER_DECADE);
    counts[Math.min(BARS - 1, bar)]! += of.counts[at]!;
  });
  const most = Math.max(1, ...counts);
  return counts.map((count) => Math.sqrt(count / most));
}

function outline(shares: number[]): string {
  return shares.flatMap((share, at) => [`${x(at)},${HEIGHT * (1 - share)}`, `${x(at + 1)},${HEIGHT * (1 - share)}`]).join(" ");
}

/** Whether more I/Os arrive than the rule lets through. The sign of this is that more than a tenth
 *  of the I/Os still wait at the end of the period. */
function isMore({ waiting, expected, measured }: Expectation): boolean {
  return waiting > 10 && waiting > measured.count / 10 && expected.max > 1e9;
}

function sentence(said: Expectation): string {
  const { seconds, measured, waiting } = said;
  const today = `At today’s ${rate(measured.count / seconds)} I/Os/s`;
  if (isMore(said))
    return `${today} the queue grows: after ${seconds} s ${plural(waiting, "I/O")} would wait. A client that waits for its replies sends fewer.`;
  return `${today}, ${waiting === 0 ? "no I/O" : plural(waiting, "I/O")} would be in flight after ${seconds} s.`;
}

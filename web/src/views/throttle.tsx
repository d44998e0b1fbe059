// Draws two charts of a pool: a curve of a write's delay over the dirty data, with a point for the present
// state, and the pool's latest transaction groups on a time axis.

import type { Schemas } from "../api";
import type { Feed } from "../model/feed";
import { lasting, latency, size } from "../words";

interface ThrottleProps {
  feed: Feed;
  pool: Schemas["Pool"];
  tunables: Schemas["TunableValue"][];
  txgs: Schemas["Txg"][];
}

const WIDTH = 760;
/** The width of the words on the left. */
const MARGIN = 90;
const HEIGHT = 180;
/** The range of the delay axis: 1 µs to 100 ms, which is OpenZFS's largest delay. */
const LOW_NS = 1e3;
const HIGH_NS = 1e8;
const POINTS = 200;
/** How many past positions of the live point its trail shows. */
const TRAIL = 12;
/** The largest number of transaction groups that are drawn, and the possible lengths of their time axis, in
 *  seconds. */
const TXGS = 12;
const TXG_SECONDS = [5, 15, 60];

export function Throttle(props: ThrottleProps) {
  return (
    <>
      {props.pool.throttle === "openzfs" && <Curve {...props} />}
      <Groups {...props} />
    </>
  );
}

function x(bytes: number, max: number): number {
  return Math.min(1, bytes / max) * WIDTH;
}

function y(ns: number): number {
  const share = Math.log(Math.max(ns, LOW_NS) / LOW_NS) / Math.log(HIGH_NS / LOW_NS);
  return HEIGHT * (1 - Math.min(1, share));
}

/** OpenZFS's delay: scale × (dirty − least) ÷ (max − dirty), at most 100 ms. */
export function delayOf(dirty: number, least: number, max: number, scale: number): number {
  if (dirty <= least) return 0;
  return dirty >= max ? HIGH_NS : Math.min(HIGH_NS, (scale * (dirty - least)) / (max - dirty));
}

function Curve({ feed, pool, tunables }: ThrottleProps) {
  const value = (name: string): number => tunables.find((one) => one.name === name)?.value ?? 0;
  const max = pool.level.stops_at_bytes;
  const least = pool.level.delays_above_bytes ?? max;
  const scale = value("zfs_delay_scale");
  const points = Array.from({ length: POINTS + 1 }, (_, at) => (at / POINTS) * max)
    .filter((dirty) => dirty > least)
    .map((dirty) => `${x(dirty, max).toFixed(1)},${y(delayOf(dirty, least, max, scale)).toFixed(1)}`);
  const trail = feed.statuses
    .slice(-TRAIL)
    .flatMap(({ status }) => status.pools.find((one) => one.name === pool.name)?.level ?? []);
  const now = pool.level;
  return (
    <svg
      class="curve"
      viewBox={`-${MARGIN} -16 ${WIDTH + MARGIN + 20} ${HEIGHT + 50}`}
      role="img"
      aria-label={`The delay of a write over the dirty data. Now ${size(now.filled_bytes)} are dirty, and a write waits ${latency(now.delay_ns)}.`}
    >
      {[1e3, 1e4, 1e5, 1e6, 1e7, 1e8].map((ns) => (
        <g key={ns}>
          <line class="grid" x1="0" x2={WIDTH} y1={y(ns)} y2={y(ns)} />
          <text x="-8" y={y(ns) + 4} text-anchor="end">
            {latency(ns)}
          </text>
        </g>
      ))}
      <line class="mark-line" x1={x(least, max)} x2={x(least, max)} y1="0" y2={HEIGHT} />
      <text x={x(least, max)} y={HEIGHT + 14} text-anchor="middle">
        delays above {size(least)}
      </text>
      <text x={WIDTH} y={HEIGHT + 14} text-anchor="end">
        stops at {size(max)}
      </text>
      <polyline class="delay" points={points.join(" ")} />
      {trail.map((level, at) => (
        <circle
          key={at}
          class="trail"
          cx={x(level.filled_bytes, max)}
          cy={y(level.delay_ns)}
          r="2"
          opacity={(at + 1) / trail.length}
        />
      ))}
      <rect class="dirty" x="0" y={HEIGHT + 20} width={x(now.filled_bytes, max)} height="8" />
      <circle class="now" cx={x(now.filled_bytes, max)} cy={y(now.delay_ns)} r="4.5" />
    </svg>
  );
}

/** Draws transaction groups: an outline for open, grey hatching for waiting, and the live colour for syncing. */
function Groups({ pool, txgs }: ThrottleProps) {
  const to = pool.at_ns;
  const longest = TXG_SECONDS.at(-1)!;
  const seen = txgs.filter((txg) => txg.birth_ns + txg.open_ns + txg.wait_ns + txg.sync_ns >= to - longest * 1e9).slice(-TXGS);
  if (seen.length === 0) return null;
  const seconds = TXG_SECONDS.find((one) => to - seen[0]!.birth_ns <= one * 1e9) ?? longest;
  const from = to - seconds * 1e9;
  const at = (ns: number): number => Math.max(0, ((ns - from) / (to - from)) * WIDTH);
  const ROW = 14;
  return (
    <svg
      class="curve txgs"
      viewBox={`-${MARGIN} -4 ${WIDTH + MARGIN + 20} ${seen.length * ROW + 24}`}
      role="img"
      aria-label={`The last transaction groups: ${seen.map((txg) => `${txg.txg} ${txg.state}`).join(", ")}`}
    >
      {seen.map((txg, row) => {
        const opened = txg.birth_ns;
        const quiesced = opened + txg.open_ns;
        const begun = quiesced + txg.wait_ns;
        const ended = txg.state === "open" ? to : begun + txg.sync_ns;
        const title = `txg ${txg.txg}, ${txg.state}: open ${lasting(txg.open_ns)}, waited ${lasting(txg.wait_ns)}, synced ${lasting(txg.sync_ns)}, ${size(txg.dirty_bytes)}`;
        return (
          <g key={txg.txg} transform={`translate(0 ${row * ROW})`}>
            <title>{title}</title>
            <text x="-8" y="10" text-anchor="end">
              {txg.txg}
            </text>
            <rect
              class="open"
              x={at(opened)}
              y="1"
              width={Math.max(1, at(txg.state === "open" ? to : quiesced) - at(opened))}
              height="10"
            />
            {txg.state !== "open" && (
              <rect class="waiting" x={at(quiesced)} y="1" width={Math.max(0, at(begun) - at(quiesced))} height="10" />
            )}
            {txg.state !== "open" && (
              <rect
                class={txg.state === "syncing" ? "syncing" : "synced"}
                x={at(begun)}
                y="1"
                width={Math.max(1, at(Math.max(begun, ended)) - at(begun))}
                height="10"
              />
            )}
          </g>
        );
      })}
      <text x="0" y={seen.length * ROW + 14}>
        {seconds} s ago
      </text>
      <text x={WIDTH} y={seen.length * ROW + 14} text-anchor="end">
        now; outline: open, light: waiting, dark: synced
      </text>
    </svg>
  );
}

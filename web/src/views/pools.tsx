// Pools: the clients' operations on their way to the disks, the throttle with its live point, and the
// transaction groups as they move.

import { Fragment } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Schemas } from "../api";
import { part } from "../api";
import type { Feed } from "../model/feed";
import { lasting, latency, plural, rate, size, three, UNKNOWN } from "../words";
import { Throttle } from "./throttle";
import { LATELY, MUCH, writesOf } from "./writes";

type Pool = Schemas["Pool"];
type Sums = Schemas["TrafficSum"];
type Traffic = Schemas["PoolTraffic"];

export function Pools({ feed }: { feed: Feed }) {
  const { pools } = feed.status!;
  return (
    <main class="pools">
      <h1>Pools</h1>
      {pools.length === 0 && (
        <p class="state">This lab has no pool. Describe one in the lab file, with volumes: see docs/lab.md.</p>
      )}
      {pools.map((pool) => (
        <OnePool key={pool.name} feed={feed} pool={pool} />
      ))}
    </main>
  );
}

function OnePool({ feed, pool }: { feed: Feed; pool: Pool }) {
  const before = earlier(feed, pool.name);
  return (
    <section class="pool">
      <h2>
        {pool.name}{" "}
        <small>
          {members(pool)}, {size(pool.allocated_bytes)} of {size(pool.size_bytes)} in volumes
        </small>
      </h2>
      {pool.failed && <p class="wrong">{pool.failed}</p>}
      {before ? <Levels feed={feed} pool={pool} before={before} /> : <p class="state">Measuring…</p>}
      {pool.throttle !== "none" || pool.dirty_bytes > 0 ? (
        <Delays feed={feed} pool={pool} />
      ) : (
        <p class="note">Its volumes write through: there is no dirty data, and no throttle.</p>
      )}
    </section>
  );
}

function members(pool: Pool): string {
  const words = pool.members.map((member) => (member.length > 1 ? `mirror of ${member.join(" and ")}` : member[0]));
  return words.length > 1 ? `a stripe of ${words.join(", ")}` : words.join("");
}

/** The pool some seconds ago, or null if the page had not yet seen the pool at that time. */
function earlier(feed: Feed, name: string): Pool | null {
  const first = feed.statuses.slice(-LATELY - 1)[0]?.status;
  return feed.statuses.length < 2 ? null : (first?.pools.find((one) => one.name === name) ?? null);
}

interface Level {
  name: string;
  sums: Sums;
}

const LEVELS = { volumes: "clients to volumes", queues: "into the queues", disks: "at the disks" } as const;

function Levels({ feed, pool, before }: { feed: Feed; pool: Pool; before: Pool }) {
  const seconds = (pool.at_ns - before.at_ns) / 1e9;
  const levels = levelsOf(pool.traffic, before.traffic, seconds);
  const volumes = feed.status!.volumes.filter((one) => one.pool === pool.name);
  return (
    <>
      <h3>
        Amplification <small>of the last {lasting(seconds * 1e9)}, without flushes; one scale for each column</small>
      </h3>
      <LevelTable levels={levels} scale={levels} />
      <h3>
        Its volumes{" "}
        <small>
          {volumes.length > 1
            ? "on the same scales; an I/O that a queue joined from blocks of several volumes counts for the volume of its first block"
            : ""}
        </small>
      </h3>
      {volumes.map((volume) => (
        <Fragment key={volume.name}>
          <VolumeLine feed={feed} volume={volume} />
          {volumes.length > 1 && <LevelTable levels={levelsOfVolume(volume.name, pool, before, seconds)} scale={levels} />}
        </Fragment>
      ))}
    </>
  );
}

function levelsOfVolume(name: string, pool: Pool, before: Pool, seconds: number): Level[] {
  const of = (one: Pool): Traffic | undefined => one.by_volume.find((volume) => volume.volume === name)?.traffic;
  const now = of(pool);
  return now === undefined ? [] : levelsOf(now, of(before) ?? now, seconds);
}

function levelsOf(now: Traffic, before: Traffic, seconds: number): Level[] {
  return (["volumes", "queues", "disks"] as const).map((level) => ({
    name: LEVELS[level],
    sums: difference(now[level], before[level], seconds),
  }));
}

/** The figures of each level, with bars as long as their share of the largest figure in `scale`. */
function LevelTable({ levels, scale }: { levels: Level[]; scale: Level[] }) {
  return (
    <div class="scroll">
      <table class="levels">
        <colgroup>
          <col class="layer" />
          {FIGURES.map(({ words }) => (
            <Fragment key={words}>
              <col class="bar" />
              <col />
              <col class="factor" />
            </Fragment>
          ))}
        </colgroup>
        <thead>
          <tr>
            <th scope="col">Layer</th>
            {FIGURES.map(({ words }) => (
              <th scope="col" colSpan={3} key={words}>
                {words}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {levels.map((level) => (
            <tr key={level.name}>
              <th scope="row">{level.name}</th>
              {FIGURES.map((figure) => (
                <Bar key={figure.words} figure={figure} scale={scale} above={levels[0]!} level={level} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const FIGURES: { words: string; of: (sums: Sums) => number; said: (value: number) => string }[] = [
  { words: "reads/s", of: (sums) => sums.reads, said: rate },
  { words: "writes/s", of: (sums) => sums.writes, said: rate },
  { words: "read/s", of: (sums) => sums.read_bytes, said: (value) => size(Math.round(value)) },
  { words: "written/s", of: (sums) => sums.written_bytes, said: (value) => size(Math.round(value)) },
];

function Bar({ figure, scale, above, level }: { figure: (typeof FIGURES)[number]; scale: Level[]; above: Level; level: Level }) {
  const value = figure.of(level.sums);
  const most = Math.max(1e-9, ...scale.map((one) => figure.of(one.sums)));
  const asked = figure.of(above.sums);
  const factor = level === above || asked === 0 ? null : value / asked;
  return (
    <>
      <td class="bar">
        <i class="outside" style={{ width: `${(value / most) * 100}%` }} />
      </td>
      <td data-name={figure.words}>{figure.said(value)}</td>
      <td class={factor !== null && factor >= MUCH ? "factor here-words" : "factor"}>
        {factor === null ? "" : `×${three(factor)}`}
      </td>
    </>
  );
}

function difference(now: Sums, before: Sums, seconds: number): Sums {
  const of = (key: keyof Sums): number => (now[key] - before[key]) / seconds;
  return { reads: of("reads"), read_bytes: of("read_bytes"), writes: of("writes"), written_bytes: of("written_bytes") };
}

/** A sentence about a volume: how many blocks a client's write becomes, and why. */
function VolumeLine({ feed, volume }: { feed: Feed; volume: Schemas["Volume"] }) {
  const writes = writesOf(feed, volume.name);
  if (!writes)
    return (
      <p>
        {volume.name}: no write lately. Its block size is {size(volume.block_bytes)}.
      </p>
    );
  const { blocks } = writes;
  const isMuch = blocks >= MUCH || blocks <= 1 / MUCH;
  const mark = isMuch ? "here-words" : "";
  const said =
    blocks >= 1.05 ? (
      <>
        becomes <b class={mark}>{three(blocks)} blocks</b>
      </>
    ) : blocks <= 0.95 ? (
      <>
        is <b class={mark}>{three(blocks)} of a block</b>, whose rest must be read first
      </>
    ) : (
      <>is one block</>
    );
  return (
    <p class={isMuch ? "finding" : ""}>
      Each write to {volume.name} {said}: its clients write {size(Math.round(writes.bytes))}, its block size is{" "}
      {size(volume.block_bytes)}.
    </p>
  );
}

function Delays({ feed, pool }: { feed: Feed; pool: Pool }) {
  const [tunables, setTunables] = useState<Schemas["TunableValue"][]>([]);
  const [txgs, setTxgs] = useState<Schemas["Txg"][]>([]);
  useEffect(() => {
    const path = `/v1/pools/${part(pool.name)}`;
    void feed.api.get<Schemas["TunableValue"][]>(`${path}/tunables`).then(setTunables, () => undefined);
    void feed.api.get<Schemas["Txg"][]>(`${path}/txgs`).then(setTxgs, () => undefined);
  }, [pool.at_ns]);
  const { admissions } = pool;
  return (
    <>
      <h3>
        Throttle{" "}
        <small>
          {pool.throttle}: {size(pool.level.filled_bytes)} of {size(pool.level.stops_at_bytes)}, a write that came now would{" "}
          {pool.level.delay_ns > 0 ? `wait ${latency(pool.level.delay_ns)}` : "not wait"}
        </small>
      </h3>
      <p class="finding">
        {pool.level.delay_ns > 0
          ? `Writes are held back by ${latency(pool.level.delay_ns)} each.`
          : pool.throttled > 0
            ? `${plural(pool.throttled, "write")} wait for room.`
            : "No write is held back."}
      </p>
      <Throttle feed={feed} pool={pool} tunables={tunables} txgs={txgs} />
      <p class="note">
        Since the start: {plural(admissions.assigned, "write")} admitted,{" "}
        {plural(admissions.dirty_delay + admissions.delay, "time")} delayed,{" "}
        {plural(admissions.dirty_over_max + admissions.write_limit, "time")} stopped.{" "}
        {pool.degraded ? "A disk fails writes, which the pool repeats." : ""}
      </p>
      <Tune feed={feed} pool={pool} tunables={tunables} />
    </>
  );
}

/** The tunables whose effect the curve shows. */
const SHOWN = [
  "zfs_dirty_data_max",
  "zfs_delay_min_dirty_percent",
  "zfs_delay_scale",
  "zfs_txg_timeout",
  "zfs_dirty_data_sync_percent",
  "zfs_vdev_async_write_max_active",
  "zfs_throttle_delay",
  "zfs_txg_synctime_ms",
];

function Tune({ feed, pool, tunables }: { feed: Feed; pool: Pool; tunables: Schemas["TunableValue"][] }) {
  const [name, setName] = useState(SHOWN[0]!);
  const [words, setWords] = useState("");
  const [said, say] = useState("");
  const known = tunables.filter((one) => SHOWN.includes(one.name));
  const now = known.find((one) => one.name === name);
  const set = (event: Event): void => {
    event.preventDefault();
    feed.api.send("PATCH", `/v1/pools/${part(pool.name)}/tunables`, { tunables: { [name]: words } }).then(
      () => say(`${name} is ${words} now.`),
      (error: Error) => say(`${error.message}.`),
    );
  };
  return (
    <form class="tune" onSubmit={set} aria-label={`Tunables of ${pool.name}`}>
      <label>
        Tunable{" "}
        <select value={name} onChange={(event) => setName(event.currentTarget.value)}>
          {known.map((one) => (
            <option key={one.name} value={one.name}>
              {one.name}
            </option>
          ))}
        </select>
      </label>
      <label>
        Value <input value={words} placeholder={now?.words ?? UNKNOWN} onInput={(event) => setWords(event.currentTarget.value)} />
      </label>
      <button class="primary" disabled={words.trim() === ""}>
        Set
      </button>
      <p class="note">
        {now?.help} Now {now?.words}, default {now?.default_words}.{" "}
        <code>
          dashpot set {pool.name} {name}={words || now?.words}
        </code>
      </p>
      <p role="status">{said}</p>
    </form>
  );
}

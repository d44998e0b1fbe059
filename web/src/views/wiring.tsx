// The lab as it is wired: clients, volumes, pools and disks. The more operations a wire carries, the thicker it is.
// The path through the part under the pointer is drawn in the colour of the text.

import { useEffect, useState } from "preact/hooks";
import type { Schemas } from "../api";
import { type Feed, isInForce } from "../model/feed";
import { Histogram } from "../model/histogram";
import type { Layer } from "../model/statistic";
import { LATELY, lately } from "../ui/rail";
import { cut, latency, plural, rate, size } from "../words";

interface Node {
  id: string;
  column: number;
  name: string;
  note: string;
  /** Whether the node belongs to a pool. Nodes outside of pools are drawn below these, so that wires do not cross. */
  pooled: boolean;
  /** Operations in a second; null if they are unknown. */
  ops: number | null;
}

interface Wire {
  from: string;
  to: string;
  ops: number | null;
}

const WIDTH = 880;
const ROW = 40;
const HEAD = 30;
const COLUMNS = [
  { x: 0, title: "Clients" },
  { x: 280, title: "Volumes" },
  { x: 450, title: "Pools" },
  { x: 590, title: "Disks" },
];
/** The place where the text of a column ends and its wires begin. */
const ENDS = [190, 390, 530];
/** The largest number of nodes in a column. */
const MOST = 24;

export function Wiring({ feed }: { feed: Feed }) {
  const [over, setOver] = useState<string | null>(null);
  const clients = useClients(feed);
  const nodes = nodesOf(feed, clients);
  const wires = wiresOf(feed, clients).filter((wire) => nodes.has(wire.from) && nodes.has(wire.to));
  const { places, height } = placesOf(nodes);
  const most = Math.max(1, ...wires.map((wire) => wire.ops ?? 0));
  const path = over === null ? null : reached(over, wires);
  const left = (feed.status?.disks.length ?? 0) - [...nodes.values()].filter((one) => one.column === 3).length;
  return (
    <figure class="wiring scroll" tabIndex={0} aria-label="How the lab is wired">
      <svg
        viewBox={`0 0 ${WIDTH} ${height}`}
        role="img"
        aria-label={`${plural(clients.size, "client")}, ${plural(feed.namesOf("volume").length, "volume")}, ${plural(feed.status!.pools.length, "pool")}, ${plural(feed.namesOf("disk").length, "disk")}, as they are wired`}
      >
        {COLUMNS.map(({ x, title }) => (
          <text key={title} class="head" x={x} y="14">
            {title}
          </text>
        ))}
        <text class="head number" x="800" y="14">
          p99
        </text>
        {wires.map((wire) => {
          const [from, to] = [nodes.get(wire.from)!, nodes.get(wire.to)!];
          const [x, y, u, v] = [ENDS[from.column]!, places.get(from.id)!, COLUMNS[to.column]!.x - 10, places.get(to.id)!];
          const middle = (x + u) / 2;
          const isOn = path === null ? "" : path.has(wire.from) && path.has(wire.to) ? "on" : "off";
          return (
            <path
              key={`${wire.from} ${wire.to}`}
              class={`wire ${isOn}`}
              d={`M${x} ${y}C${middle} ${y} ${middle} ${v} ${u} ${v}`}
              stroke-width={1 + 5 * Math.sqrt((wire.ops ?? 0) / most)}
            />
          );
        })}
        {feed
          .status!.pools.flatMap((pool) => pool.members.filter((sides) => sides.length > 1))
          .map((sides) => {
            const ys = sides.flatMap((disk) => places.get(`disk ${disk}`) ?? []);
            return (
              ys.length > 1 && (
                <path
                  key={sides.join(" ")}
                  class="bracket-of-mirror"
                  d={`M585 ${Math.min(...ys) - 8}H581V${Math.max(...ys) + 8}H585`}
                />
              )
            );
          })}
        {[...nodes.values()].map((node) => (
          <g
            key={node.id}
            class={`node ${path === null ? "" : path.has(node.id) ? "on" : "off"}`}
            onPointerEnter={() => setOver(node.id)}
            onPointerLeave={() => setOver(null)}
          >
            <rect
              x={COLUMNS[node.column]!.x}
              y={places.get(node.id)! - ROW / 2}
              width={node.column === 3 ? 290 : ENDS[node.column]! - COLUMNS[node.column]!.x}
              height={ROW}
              fill="transparent"
            />
            <text class="name" x={COLUMNS[node.column]!.x} y={places.get(node.id)! - 1}>
              {cut(node.name, node.column === 0 ? 22 : 14)}
              <title>{node.name}</title>
            </text>
            <text class="note-of" x={COLUMNS[node.column]!.x} y={places.get(node.id)! + 13}>
              {[node.ops === null ? "" : `${rate(node.ops)}/s`, node.note].filter(Boolean).join(", ")}
            </text>
            {node.column === 3 && <DiskFigures feed={feed} name={node.name} y={places.get(node.id)!} />}
          </g>
        ))}
      </svg>
      {left > 0 && <figcaption class="note">{plural(left, "disk")} more are in the table.</figcaption>}
    </figure>
  );
}

/** The distribution of a disk's latencies, from 10 µs to 1 s, its p99, and its rules. */
function DiskFigures({ feed, name, y }: { feed: Feed; name: string; y: number }) {
  const { layout, past } = feed;
  const all = new Histogram(layout!);
  const series = feed.devices.get("disk");
  for (let second = past!.to - LATELY; second < past!.to; second += 1) {
    const part = series?.seconds.get(second)?.find((one) => one.value === name);
    if (part?.numbers) all.add(part.numbers);
  }
  const bars = new Float64Array(25);
  all.counts.forEach((count, bucket) => {
    const place = Math.min(24, Math.max(0, Math.floor((Math.log10(Math.max(layout!.from[bucket]!, 1e4)) - 4) * 5)));
    bars[place]! += count;
  });
  const most = Math.sqrt(Math.max(1, ...bars));
  const rules = feed.rules.filter((rule) => rule.disk === name && isInForce(rule));
  return (
    <>
      <g class="spark">
        {[...bars].map(
          (count, at) =>
            count > 0 && (
              <rect
                key={at}
                x={692 + at * 2}
                y={y + 6 - (14 * Math.sqrt(count)) / most}
                width="1.5"
                height={(14 * Math.sqrt(count)) / most}
              />
            ),
        )}
      </g>
      <path class="floor" d={`M692 ${y + 6.5}H742`} />
      <text class="number" x="800" y={y + 5}>
        {latency(lately(feed, "disk", name).p99)}
      </text>
      {rules.length > 0 && (
        <text class="armed-on" x="812" y={y + 5}>
          {rules.length === 1 ? `rule ${rules[0]!.id}` : `${rules.length} rules`}
          <title>{rules.map((rule) => rule.rule).join("; ")}</title>
        </text>
      )}
    </>
  );
}

/** A client: the devices that it uses, and its operations per second. */
interface Client {
  devices: { layer: Layer; name: string }[];
  ops: number | null;
}

function useClients(feed: Feed): Map<string, Client> {
  const [rates, setRates] = useState<Map<string, number>>(new Map());
  const to = feed.past!.to;
  useEffect(() => {
    const from = Math.max(to - LATELY, feed.past!.spans.at(-1)?.from ?? to);
    if (from >= to) return;
    const ask = (layer: Layer): Promise<Schemas["Columns"]> =>
      feed.api.get(
        `/v1/statistics/columns?${new URLSearchParams({ statistic: `${layer}.ops[client]`, from_ns: `${from}000000000`, to_ns: `${to}000000000`, step_ns: "3600000000000" })}`,
      );
    Promise.all([ask("disk"), ask("volume")]).then(
      (said) => {
        const sums = new Map<string, number>();
        for (const part of said.flatMap((one) => one.columns).flatMap((column) => column.parts))
          sums.set(part.value ?? "", (sums.get(part.value ?? "") ?? 0) + part.count / (to - from));
        setRates(sums);
      },
      () => undefined,
    );
  }, [to]);
  const found = new Map<string, Client>();
  const add = (layer: Layer, device: { name: string; clients: { name: string }[] }): void => {
    for (const { name } of device.clients) {
      const client = found.get(name) ?? { devices: [], ops: rates.get(name) ?? null };
      client.devices.push({ layer, name: device.name });
      found.set(name, client);
    }
  };
  feed.status!.volumes.forEach((volume) => add("volume", volume));
  feed.status!.disks.filter((disk) => disk.pool === null).forEach((disk) => add("disk", disk));
  return found;
}

/** How a client reaches its disk, in words. */
function door(name: string): string {
  if (name.startsWith("/dev/")) return "attached";
  if (name.startsWith("exe=")) return "system calls";
  return name.startsWith("uid=") ? "NBD, unix socket" : /^[\d.[]/.test(name) ? "NBD, TCP" : "";
}

function nodesOf(feed: Feed, clients: Map<string, Client>): Map<string, Node> {
  const { disks, volumes, pools } = feed.status!;
  const all: Node[][] = [
    [...clients].map(([name, { ops, devices }]) => ({
      id: `client ${name}`,
      column: 0,
      name,
      note: door(name),
      ops,
      pooled: devices.some((one) => one.layer === "volume"),
    })),
    volumes.map(({ name, block_bytes: block, write }) => ({
      id: `volume ${name}`,
      column: 1,
      name,
      note: `${size(block)}, ${write}`,
      ops: lately(feed, "volume", name).opsPerSecond,
      pooled: true,
    })),
    pools.map((pool) => ({
      id: `pool ${pool.name}`,
      column: 2,
      name: pool.name,
      note: pool.members.some((sides) => sides.length > 1) ? "mirrors" : "stripe",
      ops: null,
      pooled: true,
    })),
    disks.map(({ name, suspended, off, pool, damaged }) => ({
      id: `disk ${name}`,
      column: 3,
      name,
      note: [off ? "off" : suspended ? "suspended" : "", damaged ? "damaged" : ""].filter(Boolean).join(", "),
      ops: lately(feed, "disk", name).opsPerSecond,
      pooled: pool !== null,
    })),
  ];
  return new Map(all.flatMap((nodes) => nodes.slice(0, MOST)).map((node) => [node.id, node]));
}

function wiresOf(feed: Feed, clients: Map<string, Client>): Wire[] {
  const { disks, volumes } = feed.status!;
  const ofClients = [...clients].flatMap(([name, { devices, ops }]) =>
    devices.map((device) => ({
      from: `client ${name}`,
      to: `${device.layer} ${device.name}`,
      ops: devices.length === 1 ? ops : null,
    })),
  );
  const ofVolumes = volumes.map(({ name, pool }) => ({
    from: `volume ${name}`,
    to: `pool ${pool}`,
    ops: lately(feed, "volume", name).opsPerSecond,
  }));
  const ofPools = disks
    .filter((disk) => disk.pool !== null)
    .map(({ name, pool }) => ({ from: `pool ${pool}`, to: `disk ${name}`, ops: lately(feed, "disk", name).opsPerSecond }));
  return [...ofClients, ...ofVolumes, ...ofPools];
}

/** The vertical position of each node: the nodes of pools are above all others, and the nodes of a column are spread
 *  evenly. */
function placesOf(nodes: Map<string, Node>): { places: Map<string, number>; height: number } {
  const places = new Map<string, number>();
  let top = HEAD;
  for (const pooled of [true, false]) {
    const columns = COLUMNS.map((_, column) =>
      [...nodes.values()].filter((one) => one.column === column && one.pooled === pooled),
    );
    const band = ROW * Math.max(...columns.map((own) => own.length));
    for (const own of columns) own.forEach(({ id }, at) => places.set(id, top + ((at + 0.5) * band) / own.length));
    top += band;
  }
  return { places, height: Math.max(top, HEAD + ROW) };
}

/** The nodes that a node reaches, and those that reach it. */
function reached(start: string, wires: Wire[]): Set<string> {
  const found = new Set([start]);
  for (const [here, there] of [
    ["from", "to"],
    ["to", "from"],
  ] as const) {
    const next = [start];
    for (let one = next.pop(); one !== undefined; one = next.pop()) {
      for (const wire of wires)
        if (wire[here] === one && !found.has(wire[there])) {
          found.add(wire[there]);
          next.push(wire[there]);
        }
    }
  }
  return found;
}

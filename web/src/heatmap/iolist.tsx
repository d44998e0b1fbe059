// The single I/Os of a rectangle, a hundred at a time, with where each spent its time.

import { useEffect, useState } from "preact/hooks";
import type { Schemas } from "../api";
import type { Feed } from "../model/feed";
import type { Statistic } from "../model/statistic";
import { UNKNOWN, clock, cut, latency, size, thousands } from "../words";

interface IoListProps {
  feed: Feed;
  statistic: Statistic;
  from: number;
  to: number;
  least: number;
  /** Excluded; null without a bound. */
  end: number | null;
  unit: string | null;
}

const PAGE = 100;

export function IoList({ feed, statistic, from, to, least, end, unit }: IoListProps) {
  const [zios, setZios] = useState<Schemas["FinishedZio"][]>([]);
  const [next, setNext] = useState<number | null>(0);
  const [wrong, setWrong] = useState("");
  const more = (): void => {
    const suffix = unit === "ns" ? "ns" : "";
    const bounds = [`[${statistic.metric}>=${least}${suffix}]`, end === null ? "" : `[${statistic.metric}<${end}${suffix}]`];
    const where = statistic.conditions.map((one) => `[${one}]`).concat(bounds).join("");
    const query = new URLSearchParams({ after: String(next ?? 0), limit: String(PAGE), layer: statistic.layer, where, from_ns: `${from}000000000`, to_ns: `${to}000000000` });
    feed.api.get<Schemas["FinishedZios"]>(`/v1/events?${query}`).then((said) => {
      setZios([...zios, ...said.zios]);
      setNext(said.zios.length < PAGE ? null : said.next);
    }, (error: Error) => setWrong(error.message));
  };
  useEffect(more, []);
  return (
    <section class="ios">
      <table>
        <thead><tr><th scope="col">time</th><th scope="col">device</th><th scope="col">type</th><th scope="col">size</th><th scope="col">total</th><th scope="col">mostly</th><th scope="col">client</th></tr></thead>
        <tbody>
          {zios.map((zio) => (
            <tr key={`${zio.disk} ${zio.arrived_ns} ${zio.offset_bytes}`}>
              <th scope="row">{clock(feed.past!.wall(zio.ended_ns / 1e9))}</th>
              <td class="word">{cut(zio.disk, 10)}</td><td class="word">{zio.op}</td><td>{size(zio.length_bytes)}</td><td>{latency(zio.total_ns)}</td>
              <td class="word">{longest(zio)}</td><td class="word" title={zio.client}>{cut(zio.client, 14)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {wrong && <p class="wrong">{wrong}.</p>}
      {next === null ? <p class="note">{thousands(zios.length)} I/Os that the daemon remembers.</p> : <button onClick={more}>The next {PAGE}</button>}
    </section>
  );
}

/** The longest of its waits. */
function longest(zio: Schemas["FinishedZio"]): string {
  const waits = Object.entries(zio.waits).map(([name, wait]) => [name.replace("_ns", ""), Number(wait)] as const);
  const [name, wait] = waits.reduce((one, other) => (other[1] > one[1] ? other : one), ["", 0] as readonly [string, number]);
  return wait === 0 ? UNKNOWN : name === "hold" && zio.rule !== null ? `rule ${zio.rule}` : name;
}

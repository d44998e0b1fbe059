// The single I/Os of a rectangle, a hundred at a time, with the waits in which each I/O spent its time.

import { useEffect, useState } from "preact/hooks";
import type { Schemas } from "../api";
import type { Feed } from "../model/feed";
import { type Statistic, written } from "../model/statistic";
import { clock, cut, latency, plural, size, thousands, UNKNOWN } from "../words";

interface IoListProps {
  feed: Feed;
  statistic: Statistic;
  from: number;
  to: number;
  least: number;
  /** The end of the range of numbers, which is not included; null if there is no upper bound. */
  end: number | null;
}

const PAGE = 100;

type Io = Schemas["StatisticIo"];

export function IoList({ feed, statistic, from, to, least, end }: IoListProps) {
  const [ios, setIos] = useState<Io[]>([]);
  const [said, say] = useState<{ count: number; since: number } | null>(null);
  const [wrong, setWrong] = useState("");
  const more = (): void => {
    const query = new URLSearchParams({
      statistic: written({ ...statistic, by: null }),
      from_ns: `${from}000000000`,
      to_ns: `${to}000000000`,
      least: String(least),
      skip: String(ios.length),
      limit: String(PAGE),
    });
    if (end !== null) query.set("most", String(end - 1));
    feed.api.get<Schemas["StatisticIos"]>(`/v1/statistics/ios?${query}`).then(
      (found) => {
        setIos([...ios, ...found.ios]);
        say({ count: found.count, since: found.since_ns / 1e9 });
      },
      (error: Error) => setWrong(error.message),
    );
  };
  useEffect(more, []);
  return (
    <section class="ios">
      <table>
        <thead>
          <tr>
            <th scope="col">time</th>
            <th scope="col">device</th>
            <th scope="col">type</th>
            <th scope="col">size</th>
            <th scope="col">total</th>
            <th scope="col">mostly</th>
            <th scope="col">by</th>
          </tr>
        </thead>
        <tbody>
          {ios.map((io, at) => (
            <tr key={at}>
              <th scope="row">{clock(feed.past!.wall(io.ended_ns / 1e9))}</th>
              <td class="word" title={io.device}>
                {cut(io.device, 10)}
              </td>
              <td class="word">
                {io.op}
                {io.error && (
                  <>
                    {" "}
                    <b class="here-words">{io.error}</b>
                  </>
                )}
              </td>
              <td title={`at ${thousands(io.offset_bytes)}`}>{size(io.length_bytes)}</td>
              <td>{io.total_ns == null ? "-" : latency(io.total_ns)}</td>
              <td class="word" title={io.waits.map((one) => `${one.wait} ${latency(one.ns)}`).join(", ")}>
                {longest(io)}
              </td>
              <td class="word" title={whoOf(io)}>
                {cut(whoOf(io), 14)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {wrong && <p class="wrong">{wrong}.</p>}
      {said &&
        (said.count > ios.length ? (
          <button onClick={more}>
            The next {PAGE} of {thousands(said.count)}
          </button>
        ) : (
          <p class="note">
            {plural(said.count, "I/O")}, the longest first
            {said.since > from ? `; single ones are remembered since ${clock(feed.past!.wall(said.since))}` : ""}.
          </p>
        ))}
    </section>
  );
}

/** The client or the process that asked for the I/O and, if it is not the first of its process, the thread. */
function whoOf({ client, process, pid, thread, tid }: Io): string {
  const named = (name?: string | null, id?: number | null) => [name, id].filter((one) => one != null).join(" ");
  const own = tid === pid ? "" : named(thread, tid);
  return client ?? ([named(process, pid), own && `thread ${own}`].filter(Boolean).join(", ") || UNKNOWN);
}

/** The longest of the I/O's waits. */
function longest({ waits, rule }: Io): string {
  const [most] = [...waits].sort((one, other) => other.ns - one.ns);
  return most === undefined ? UNKNOWN : most.wait === "hold" && rule !== null ? `rule ${rule}` : most.wait;
}

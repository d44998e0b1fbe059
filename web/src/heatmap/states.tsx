// The states that a picture does not show by itself: empty, loading, missing, idle.

import type { Feed } from "../model/feed";
import type { Series } from "../model/series";
import { deviceOf, type Statistic } from "../model/statistic";
import { clock, lasting, latency, plural, thousands } from "../words";
import type { Table } from "./grid";

interface StateProps {
  feed: Feed;
  statistic: Statistic;
  series: Series;
  table: Table;
  live: boolean;
}

export function State(props: StateProps) {
  return (
    <p class="state" aria-live="polite">
      {words(props).map((one) => (
        <span key={one}>{one} </span>
      ))}
    </p>
  );
}

function words({ feed, statistic, series, table, live }: StateProps): string[] {
  const said: string[] = [];
  const past = feed.past!;
  const lasts = (known: string): number => table.columns.filter((column) => column.known === known).length * table.view.step;
  const device = deviceOf(statistic);
  if (device !== null && !/[*?]/.test(device) && !feed.has(device))
    return [
      `This worksheet asks for ${device}. ${feed.source?.kind === "daemon" ? "It is not part of this lab now." : "This source does not have it."}`,
    ];
  if (feed.contact.kind === "lost") said.push(`No contact: the picture ends at ${clock(past.wall(past.to))}.`);
  if (series.reading && lasts("unread") > 5) said.push("Reading the past…");
  if (lasts("missing") > 0) said.push(`Hatched: ${lasting(lasts("missing") * 1e9)} not recorded.`);
  if (lasts("before") > 0) said.push(`Flat: ${feed.hasEnded ? "before it begins" : "not remembered"}.`);
  const dropped = table.columns.reduce((sum, column) => sum + column.dropped, 0);
  if (dropped > 0) said.push(`Ticks: ${plural(dropped, "event")} dropped, so counts are too low.`);
  return said.concat(rest(feed, statistic, table, live));
}

function rest(feed: Feed, statistic: Statistic, table: Table, live: boolean): string[] {
  const past = feed.past!;
  const name = deviceOf(statistic);
  if (feed.status === null) return table.columns.some((column) => column.count > 0) ? [] : ["No such I/O in view."];
  const devices = feed.status[statistic.layer === "disk" ? "disks" : "volumes"].filter(
    (one) => name === null || one.name === name,
  );
  const inFlight = devices.reduce((sum, device) => sum + device.in_flight, 0);
  const oldest = Math.max(0, ...devices.flatMap((device) => device.oldest[0]?.age_ns ?? []));
  const last = table.columns.findLast((column) => column.count > 0);
  if (last) {
    const idle = live && past.to - last.from > 5 * table.view.step && feed.contact.kind === "live";
    if (idle)
      return [
        `Idle since ${clock(past.wall(last.from + table.view.step))}. ${inFlight === 0 ? "Nothing waits." : `${thousands(inFlight)} in flight.`}`,
      ];
    return oldest > 2e9 ? [`${thousands(inFlight)} in flight, the oldest for ${latency(oldest)}.`] : [];
  }
  if (oldest > 0) return [`No I/O has ended. ${thousands(inFlight)} in flight, the oldest for ${latency(oldest)}.`];
  if (devices.some((device) => device.ops.some((op) => op.completed > 0))) return ["No such I/O in view."];
  const uri = devices[0]?.uris[0];
  const clients = devices.reduce((sum, device) => sum + device.clients.length, 0);
  return [
    `No I/O yet. ${clients === 0 ? "No client is connected." : `${plural(clients, "client")} connected.`}`,
    ...(uri ? [`A load: dashpot load '${uri}'`] : []),
  ];
}

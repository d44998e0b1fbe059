// For each rule: the requested figures, the achieved figures, and events that could have distorted them. The page
// prints zeroes, so that the reader sees that nothing happened.

import type { Feed, Rule } from "../model/feed";
import { capitalized, latency, percent, plural, thousands } from "../words";
import { injectedBy } from "./faults";
import { Lateness } from "./lateness";

type Summary = Rule["requested"];

export function Proof({ feed }: { feed: Feed }) {
  const rules = feed.rules.filter((rule) => rule.effect === "delay" || rule.matched > 0);
  return (
    <main class="proof">
      <h1>Proof</h1>
      <p class="note">
        The requested and the achieved times of the I/Os that each rule has held since it was armed or last changed.
      </p>
      {rules.length === 0 ? (
        <p class="state">
          No rule is armed. Arm one under Control, or with <code>dashpot inject</code>.
        </p>
      ) : (
        <Rules feed={feed} rules={rules} />
      )}
      <Host feed={feed} />
    </main>
  );
}

function Rules({ feed, rules }: { feed: Feed; rules: Rule[] }) {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="A wide table">
      <table class="figures">
        <thead>
          <tr>
            <th scope="col">Rule</th>
            <th scope="col">matched</th>
            <th scope="col">held</th>
            <th scope="col">late</th>
            <th scope="col">overrun</th>
            <th scope="col">asked p50</th>
            <th scope="col">achieved p50</th>
            <th scope="col">asked p99</th>
            <th scope="col">achieved p99</th>
            <th scope="col">lateness p50</th>
            <th scope="col">p99</th>
            <th scope="col" class="late-history" title="p50 to p99 of each 5 s, from 1 µs to 1 s">
              last 5 min
            </th>
            <th scope="col">depth</th>
            <th scope="col">stalls</th>
          </tr>
        </thead>
        <tbody>
          {rules.map((rule) => (
            <Row key={rule.id} feed={feed} rule={rule} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row({ feed, rule }: { feed: Feed; rule: Rule }) {
  const now = rule.since_update ?? rule;
  const p = (summary: Summary, which: "p50_ns" | "p99_ns"): string => latency(summary[which]);
  return (
    <tr>
      <th scope="row">
        <b>{rule.name ?? `rule ${rule.id}`}</b> on {rule.disk} <code>{rule.rule}</code>
        <br />
        <span class="verdict">{verdict(rule)}</span>
      </th>
      <td>{thousands(now.matched)}</td>
      <td>{thousands(now.held)}</td>
      <td>{thousands(now.late)}</td>
      <td>{thousands(now.overrun)}</td>
      <td>{p(now.requested, "p50_ns")}</td>
      <td>{p(now.achieved, "p50_ns")}</td>
      <td>{p(now.requested, "p99_ns")}</td>
      <td>{p(now.achieved, "p99_ns")}</td>
      <td>{p(now.lateness, "p50_ns")}</td>
      <td>{p(now.lateness, "p99_ns")}</td>
      <td class="late-history">
        <Lateness feed={feed} rule={rule} />
      </td>
      <td title="the most usual number of I/Os in flight, and the greatest">
        {rule.depth.usual}, at most {rule.depth.most}
      </td>
      <td>{thousands(rule.stalls)}</td>
    </tr>
  );
}

function verdict(rule: Rule): string {
  const now = rule.since_update ?? rule;
  if (rule.why_nothing) return capitalized(`${rule.why_nothing}.`);
  const [asked, got] = [now.requested.p50_ns, now.achieved.p50_ns];
  const off = asked && got ? `Off by ${latency(Math.abs(got - asked))} at p50 (${percent(Math.abs(got - asked) / asked)}). ` : "";
  const beaten = now.beaten > 0 ? ` ${thousands(now.beaten)} were decided by other rules.` : "";
  return `${off}${injectedBy({ ...now, effect: rule.effect })} of ${thousands(now.matched)} I/Os that matched.${beaten}`;
}

const CAN_HOLD = { yes: "can hold", doubtful: "doubtful here", no: "cannot hold here" };

/** How promptly this host lets the shards run, which lateness alone does not show. */
function Host({ feed }: { feed: Feed }) {
  const status = feed.status!;
  return (
    <>
      <h2>This host</h2>
      <div class="scroll" tabIndex={0} role="group" aria-label="A wide table">
        <table class="figures">
          <thead>
            <tr>
              <th scope="col">Shard</th>
              <th scope="col">busy</th>
              <th scope="col">loop gap p50</th>
              <th scope="col">p99</th>
              <th scope="col">max</th>
              <th scope="col">end-to-end error p50</th>
              <th scope="col">max</th>
              <th scope="col">stops</th>
              <th scope="col">longest</th>
              <th scope="col" class="word">
                In words
              </th>
            </tr>
          </thead>
          <tbody>
            {status.shards.map((shard) => (
              <tr key={shard.shard}>
                <th scope="row">
                  {shard.shard}: {shard.disks.slice(0, 6).join(", ")}
                  {shard.disks.length > 6 ? ` and ${shard.disks.length - 6} more` : ""}
                </th>
                <td>{shard.load.busy_percent} %</td>
                <td>{latency(shard.loop_gap.p50_ns)}</td>
                <td>{latency(shard.loop_gap.p99_ns)}</td>
                <td>{latency(shard.loop_gap.max_ns)}</td>
                <td>{latency(shard.probe.p50_ns)}</td>
                <td>{latency(shard.probe.max_ns)}</td>
                <td>{thousands(shard.stops.all.count)}</td>
                <td>{latency(shard.stops.all.longest_ns)}</td>
                <td class="word">
                  {shard.load.overloaded
                    ? "Overloaded: its delays are too long."
                    : shard.stops.recent.count > 0
                      ? `The host stopped it ${plural(shard.stops.recent.count, "time")} lately.`
                      : "Keeps time."}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>Promises</h2>
      <ul class="promises">
        {status.promises.map(({ promise, can_hold, why }) => (
          <li key={promise}>
            <b>{promise}</b>: {CAN_HOLD[can_hold]}. {capitalized(why)}.
          </li>
        ))}
      </ul>
    </>
  );
}

import { useState } from "preact/hooks";
import { part, Refused, type Schemas, type Send } from "../api";
import type { Feed, Rule } from "../model/feed";
import { lately } from "../ui/rail";
import { lasting, latency, plural, rate, thousands, UNKNOWN } from "../words";
import { Arm } from "./arm";
import { Crash } from "./crash";
import { damageOf, Faults, injectedBy } from "./faults";
import { Wiring } from "./wiring";

type Disk = Schemas["Disk"];

/** The answer to the last request, in words. */
type Said = { good: boolean; words: string } | null;

const SUSPENDED_NS = 10e9;

/** The disks with their rules; rules are armed, changed and cleared here. */
export function Control({ feed }: { feed: Feed }) {
  const [chosen, choose] = useState<{ disk: string; rule: Rule | null } | null>(null);
  const [said, say] = useState<Said>(null);
  const [cutting, setCutting] = useState<string | null>(null);
  const [looking, look] = useState<string | null>(null);
  const send: Send = async (method, path, body, done) => {
    try {
      const answer = await feed.api.send<Schemas["Crashed"]>(method, path, body);
      say({ good: true, words: typeof done === "string" ? done : done(answer) });
      feed.soon(0);
      return true;
    } catch (error) {
      const remedy = error instanceof Refused && error.remedy ? ` ${error.remedy}.` : "";
      say({ good: false, words: `${error instanceof Error ? error.message : String(error)}.${remedy}` });
      return false;
    }
  };
  return (
    <main class="control">
      <h1 class="reader">Control</h1>
      <div class="disks">
        <Wiring feed={feed} />
        <table>
          <thead>
            <tr>
              <th scope="col">Disk</th>
              <th scope="col">in</th>
              <th scope="col">clients</th>
              <th scope="col">ops/s</th>
              <th scope="col">p99</th>
              <th scope="col">in flight</th>
              <th scope="col">Rules</th>
              <th scope="col">
                <span class="reader">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {feed.status!.disks.map((disk) => (
              <DiskRow
                key={disk.name}
                feed={feed}
                disk={disk}
                send={send}
                cut={() => setCutting(disk.name)}
                look={() => look(disk.name)}
                choose={(rule) => {
                  say(null);
                  choose({ disk: disk.name, rule });
                }}
              />
            ))}
          </tbody>
        </table>
        {feed.rules.length > 0 && (
          <p>
            <button onClick={() => void send("POST", "/v1/reset", {}, "All rules are as the lab has them.")}>
              Reset the rules
            </button>
          </p>
        )}
        <p class="state" role="status">
          {said && <span class={said.good ? "" : "wrong"}>{said.words}</span>}
        </p>
      </div>
      {cutting && <Crash disk={cutting} send={send} close={() => setCutting(null)} />}
      {looking && <Faults feed={feed} disk={looking} close={() => look(null)} />}
      {chosen && (
        <Arm
          key={`${chosen.disk} ${chosen.rule?.id}`}
          feed={feed}
          disk={feed.status!.disks.find((one) => one.name === chosen.disk)!}
          rule={chosen.rule}
          send={send}
          close={() => choose(null)}
        />
      )}
    </main>
  );
}

function DiskRow({
  feed,
  disk,
  send,
  choose,
  cut,
  look,
}: {
  feed: Feed;
  disk: Disk;
  send: Send;
  choose: (rule: Rule | null) => void;
  cut: () => void;
  look: () => void;
}) {
  const { opsPerSecond, p99 } = lately(feed, "disk", disk.name);
  const rules = feed.rules.filter((rule) => rule.disk === disk.name);
  const path = `/v1/disks/${part(disk.name)}`;
  const suspend = (): Promise<boolean> =>
    send("POST", `${path}/suspend`, { for_ns: SUSPENDED_NS, now: true }, `${disk.name} is suspended for 10 s.`);
  const resume = (): Promise<boolean> => send("POST", `${path}/resume`, {}, `${disk.name} is resumed.`);
  return (
    <tr>
      <th scope="row">{disk.name}</th>
      <td class="word" data-name="in">
        {disk.pool ?? UNKNOWN}
      </td>
      <td class="word" data-name="by" title={disk.clients.map((one) => one.name).join(", ")}>
        {disk.clients.length === 0 ? UNKNOWN : plural(disk.clients.length, "client")}
      </td>
      <td data-name="ops/s">{opsPerSecond === null ? UNKNOWN : rate(opsPerSecond)}</td>
      <td data-name="p99">{latency(p99)}</td>
      <td data-name="in flight">{thousands(disk.in_flight)}</td>
      <td class="word rules">
        {damageOf(disk) && (
          <button class="link wrong" aria-label={`${damageOf(disk)}: ${disk.name}`} onClick={look}>
            {damageOf(disk)}
          </button>
        )}
        {rules.map((rule) => (
          <div key={rule.id}>
            <span class="rule-words">{rule.id}</span> <code>{rule.rule}</code>{" "}
            <small>
              {rule.state}, {injectedBy(rule)} of {thousands(rule.matched)}
              {rule.why_nothing ? `; ${rule.why_nothing}` : ""}
              {rule.lapses_in_ns == null ? "" : `; its lease lapses in ${lasting(rule.lapses_in_ns)}`}
            </small>
            {rule.lapses_in_ns == null ? null : (
              <button
                class="link"
                aria-label={`Renew rule ${rule.id}`}
                onClick={() => void send("POST", `/v1/rules/${rule.id}/renew`, {}, `The lease of rule ${rule.id} is renewed.`)}
              >
                Renew
              </button>
            )}
            <button class="link" aria-label={`Change rule ${rule.id}`} onClick={() => choose(rule)}>
              Change
            </button>
            <button
              class="link"
              aria-label={`Clear rule ${rule.id}`}
              onClick={() => void send("DELETE", `/v1/rules/${rule.id}`, undefined, `Rule ${rule.id} is cleared.`)}
            >
              Clear
            </button>
          </div>
        ))}
      </td>
      <td class="deeds">
        <button aria-label={`New rule on ${disk.name}`} onClick={() => choose(null)}>
          New rule…
        </button>
        {disk.suspended ? (
          <button
            aria-label={`Resume ${disk.name}`}
            title={disk.suspended.remaining_ns ? `${lasting(disk.suspended.remaining_ns)} left` : "suspended until it is resumed"}
            onClick={() => void resume()}
          >
            Resume
          </button>
        ) : (
          <button aria-label={`Suspend 10 s: ${disk.name}`} onClick={() => void suspend()}>
            Suspend 10 s
          </button>
        )}
        {disk.store.startsWith("lossy") && disk.pool === null && (
          <button aria-label={`Cut the power: ${disk.name}`} onClick={cut}>
            Cut the power…
          </button>
        )}
      </td>
    </tr>
  );
}

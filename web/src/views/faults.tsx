// What rules have done to the data of disks.

import { useEffect, useRef, useState } from "preact/hooks";
import { part, type Schemas } from "../api";
import type { Feed, Rule } from "../model/feed";
import { lasting, plural, size, thousands } from "../words";

type Disk = Schemas["Disk"];

/** The list has at most this many places and I/Os. */
const LISTED = 10;
const DEEDS: Partial<Record<Rule["effect"], "damaged" | "failed">> = { damage: "damaged", error: "failed" };

/** How many I/Os a rule has held, failed or damaged, depending on its effect. */
export function injectedBy({ effect, ...counters }: Pick<Rule, "effect" | "held" | "failed" | "damaged">): string {
  const deed = DEEDS[effect] ?? "held";
  return `${thousands(counters[deed] ?? 0)} ${deed}`;
}

/** The damage of a disk in a few words; null if rules have not damaged its data. */
export function damageOf({ damaged, wrong_bytes: wrong }: Disk): string | null {
  return damaged ? `data damaged by rules, ${plural(wrong ?? 0, "byte")} wrong` : null;
}

/** The places of a disk that are wrong now, and its last damaged I/Os. */
export function Faults({ feed, disk: name, close }: { feed: Feed; disk: string; close: () => void }) {
  const [said, say] = useState<Schemas["Faults"] | string | null>(null);
  const ref = useRef<HTMLDialogElement>(null);
  const disk = feed.status!.disks.find((one) => one.name === name);
  useEffect(() => ref.current?.showModal(), []);
  useEffect(() => {
    const gone = new AbortController();
    feed.api
      .get<Schemas["Faults"]>(`/v1/disks/${part(name)}/faults?list=${LISTED}`, gone.signal)
      .then(say, (error: Error) => gone.signal.aborted || say(error.message));
    return () => gone.abort();
  }, [name, disk?.damaged, disk?.wrong_bytes]);
  return (
    <dialog ref={ref} class="faults" onClose={close} aria-label={`Damage of ${name}`}>
      <h2>Damage of {name}</h2>
      {typeof said === "string" ? <p>{said}.</p> : said && <Damage said={said} />}
      <p class="note">
        <code>dashpot faults {name}</code> lists more.
      </p>
      <button onClick={() => ref.current?.close()}>Close</button>
    </dialog>
  );
}

function Damage({ said }: { said: Schemas["Faults"] }) {
  return (
    <>
      <p>
        Rules damaged {plural(said.damaged, "I/O")}; {plural(said.wrong_bytes, "byte")} in {plural(said.places, "place")} wrong
        now.{said.full ? " There are so many places that rules now leave the data alone." : ""}
      </p>
      {said.wrong.length > 0 && (
        <table aria-label="Wrong now">
          <thead>
            <tr>
              <th scope="col">Offset</th>
              <th scope="col">Wrong bytes</th>
            </tr>
          </thead>
          <tbody>
            {said.wrong.map(({ start_bytes: start, end_bytes: end }) => (
              <tr key={start}>
                <td>{thousands(start)}</td>
                <td>{thousands(end - start)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {said.faults.length > 0 && (
        <table aria-label="The last damaged I/Os">
          <thead>
            <tr>
              <th scope="col">Ago</th>
              <th scope="col">Rule</th>
              <th scope="col" class="word">
                Damage
              </th>
              <th scope="col" class="word">
                Type
              </th>
              <th scope="col">Offset</th>
              <th scope="col">Length</th>
              <th scope="col" class="word">
                Client
              </th>
            </tr>
          </thead>
          <tbody>
            {said.faults.map((io, at) => (
              <tr key={at}>
                <td>{lasting(io.age_ns)}</td>
                <td>{io.rule}</td>
                <td class="word">{io.damage + (io.other_bytes == null ? "" : ` to ${thousands(io.other_bytes)}`)}</td>
                <td class="word">{io.op}</td>
                <td>{thousands(io.offset_bytes)}</td>
                <td>{size(io.length_bytes)}</td>
                <td class="word">{io.client}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

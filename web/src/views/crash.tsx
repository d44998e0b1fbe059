import { useEffect, useRef, useState } from "preact/hooks";
import { part, type Schemas, type Send } from "../api";
import { plural, size } from "../words";

interface CrashProps {
  disk: string;
  send: Send;
  close: () => void;
}

/** Cuts the power of a disk after the user has typed its name: clients lose the writes that no flush has covered. */
export function Crash({ disk, send, close }: CrashProps) {
  const [typed, setTyped] = useState("");
  const [keep, setKeep] = useState("none");
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => ref.current?.showModal(), []);
  const cut = (event: Event): void => {
    event.preventDefault();
    void send("POST", `/v1/disks/${part(disk)}/crash`, { then: "restart", keep }, loss).then(() => ref.current?.close());
  };
  return (
    <dialog ref={ref} onClose={close} aria-label={`Cut the power of ${disk}`}>
      <form onSubmit={cut}>
        <h2>Cut the power of {disk}</h2>
        <p>Its clients are disconnected, and lose the writes that no flush has covered. Then the disk is served again.</p>
        <p>
          <label>
            Keep of these writes{" "}
            <select value={keep} onChange={(event) => setKeep(event.currentTarget.value)}>
              <option value="none">nothing</option>
              <option value="random">some, at random</option>
              <option value="all">everything</option>
            </select>
          </label>
        </p>
        <p>
          <label>
            Type {disk} to confirm{" "}
            <input value={typed} autoComplete="off" onInput={(event) => setTyped(event.currentTarget.value)} />
          </label>
        </p>
        <p class="note">
          <code>
            dashpot crash {disk} --restart --keep {keep}
          </code>
        </p>
        <button class="primary" disabled={typed !== disk}>
          Cut the power
        </button>{" "}
        <button type="button" onClick={() => ref.current?.close()}>
          Cancel
        </button>
      </form>
    </dialog>
  );
}

function loss({ disk, lost, unflushed, unacknowledged }: Schemas["Crashed"]): string {
  const waited = unacknowledged > 0 ? ` ${plural(unacknowledged, "write")} had no reply yet.` : "";
  return `The power of ${disk} was cut: ${plural(lost.writes, "write")} lost (${size(lost.bytes)}), of ${plural(unflushed.writes, "write")} that no flush had covered.${waited}`;
}

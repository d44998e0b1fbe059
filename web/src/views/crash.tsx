import { useEffect, useRef, useState } from "preact/hooks";
import { part } from "../api";

interface CrashProps {
  disk: string;
  send: (method: string, path: string, body: unknown, done: string) => Promise<boolean>;
  close: () => void;
}

/** Cuts the power of a disk, once its name is typed: its clients lose what no flush has covered. */
export function Crash({ disk, send, close }: CrashProps) {
  const [typed, setTyped] = useState("");
  const [keep, setKeep] = useState("none");
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => ref.current?.showModal(), []);
  const cut = (event: Event): void => {
    event.preventDefault();
    void send("POST", `/v1/disks/${part(disk)}/crash`, { then: "restart", keep }, `The power of ${disk} was cut.`).then(() => ref.current?.close());
  };
  return (
    <dialog ref={ref} onClose={close} aria-label={`Cut the power of ${disk}`}>
      <form onSubmit={cut}>
        <h2>Cut the power of {disk}</h2>
        <p>Its clients are disconnected. What no flush has covered is lost; then the disk is served again.</p>
        <p><label>Keep of it <select value={keep} onChange={(event) => setKeep(event.currentTarget.value)}>
          <option value="none">nothing</option><option value="random">some, at random</option><option value="all">everything</option>
        </select></label></p>
        <p><label>Type {disk} to confirm <input value={typed} autoComplete="off" onInput={(event) => setTyped(event.currentTarget.value)} /></label></p>
        <p class="note"><code>dashpot crash {disk} --restart --keep {keep}</code></p>
        <button class="primary" disabled={typed !== disk}>Cut the power</button> <button type="button" onClick={() => ref.current?.close()}>Cancel</button>
      </form>
    </dialog>
  );
}

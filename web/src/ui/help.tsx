import { useEffect, useRef } from "preact/hooks";

const KEYS = [
  ["Space", "live or paused"],
  ["← →", "cursor by a column (Shift: by ten)"],
  ["↑ ↓", "cursor by a row"],
  ["[ ]", "back, forward"],
  ["+ −", "zoom"],
  ["0", "to now"],
  ["1 5 h d", "1 min, 5 min, 1 h, 1 d"],
  ["m, n", "to the slowest I/Os, to the next slowest"],
  ["E", "single I/Os stand out"],
  ["y", "scale: logarithmic, linear"],
  ["c", "colour: logarithmic, linear, rank"],
  ["o", "leave the greatest out of the axis"],
  ["v, V", "zoom the axis to the rectangle or the cursor; show all numbers"],
  ["Shift+Enter", "first one corner of a rectangle, then the opposite corner"],
  ["a", "add a statistic"],
  ["g, then w c p r", "Worksheet, Control, Pools, Proof"],
  ["t", "light or dark"],
  ["Esc", "close"],
] as const;

export function Help({ close }: { close: () => void }) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => ref.current?.showModal(), []);
  return (
    <dialog ref={ref} onClose={close} aria-label="Keys">
      <h2>Keys</h2>
      <dl class="key-list">{KEYS.map(([key, deed]) => [<dt key={key}>{key}</dt>, <dd>{deed}</dd>])}</dl>
      <p class="note">No key acts while a field has the focus.</p>
      <button onClick={() => ref.current?.close()}>Close</button>
    </dialog>
  );
}

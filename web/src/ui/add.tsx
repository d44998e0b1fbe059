import { useEffect, useRef, useState } from "preact/hooks";
import type { Feed } from "../model/feed";
import { DEVICES, LAYERS, type Layer, nameOf, type Statistic, sentence } from "../model/statistic";

/** Adds a statistic by layer, metric and breakdown. */
export function AddStatistic({ feed, add, close }: { feed: Feed; add: (statistic: Statistic) => void; close: () => void }) {
  const layers = LAYERS.filter((one) => feed.namesOf(one).length > 0);
  const [layer, setLayer] = useState<Layer>(layers[0] ?? "disk");
  const [metric, setMetric] = useState("latency");
  const [by, setBy] = useState("op");
  const first = useRef<HTMLSelectElement>(null);
  useEffect(() => first.current?.focus(), []);
  const [metrics, dimensions] = [feed.metricsOf(layer), feed.dimensionsOf(layer)];
  const statistic: Statistic = { layer, metric, conditions: [], by: by === "" || metric === "offset" ? null : by };
  /** Chooses a layer, and forgets the words that this layer does not know. */
  const choose = (next: Layer): void => {
    setLayer(next);
    if (!feed.metricsOf(next).some((one) => one.word === metric)) setMetric("latency");
    if (!feed.dimensionsOf(next).some((one) => one.word === by)) setBy("");
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    add(statistic);
  };
  return (
    <form
      class="add-statistic"
      aria-label="Add statistic"
      onSubmit={submit}
      onKeyDown={(event) => event.key === "Escape" && close()}
    >
      <label>
        Layer{" "}
        <select ref={first} value={layer} onChange={(event) => choose(event.currentTarget.value as Layer)}>
          {layers.map((one) => (
            <option key={one} value={one}>
              {DEVICES[one]}
            </option>
          ))}
        </select>
      </label>
      <label>
        Metric{" "}
        <select value={metric} onChange={(event) => setMetric(event.currentTarget.value)}>
          {metrics.map(({ word, meaning }) => (
            <option key={word} value={word}>
              {word}: {meaning}
            </option>
          ))}
        </select>
      </label>
      <label>
        Broken down by{" "}
        <select value={by} disabled={metric === "offset"} onChange={(event) => setBy(event.currentTarget.value)}>
          <option value="">nothing</option>
          {dimensions.map(({ word, meaning }) => (
            <option key={word} value={word}>
              {nameOf(word)}: {meaning}
            </option>
          ))}
        </select>
      </label>
      <button class="primary">Add</button>{" "}
      <button type="button" onClick={close}>
        Cancel
      </button>
      <p class="note">{sentence(statistic)}</p>
    </form>
  );
}

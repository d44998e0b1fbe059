import { type Feed, isInForce } from "../model/feed";
import { Histogram } from "../model/histogram";
import { DEVICES, LAYERS, type Layer, type Statistic, written } from "../model/statistic";
import { go, type Route } from "../route";
import { capitalized, cut, latency, rate, UNKNOWN } from "../words";

/** A device's figures cover this many of the last closed seconds. */
export const LATELY = 10;

export interface Lately {
  opsPerSecond: number | null;
  p99: number | null;
}

/** The I/O of a device in the last closed seconds that the page knows. */
export function lately(feed: Feed, layer: Layer, device: string): Lately {
  const { past, layout } = feed;
  const series = feed.devices.get(layer);
  const unknown = { opsPerSecond: null, p99: null };
  if (!past || !layout || !series) return unknown;
  const from = Math.max(past.to - LATELY, past.spans.at(-1)?.from ?? past.to);
  if (from >= past.to) return unknown;
  const all = new Histogram(layout);
  for (let second = from; second < past.to; second += 1) {
    const parts = series.seconds.get(second) ?? [];
    const part = parts.find((one) => one.value === device);
    if (part?.numbers) all.add(part.numbers);
    // In each second, only a limited number of devices count separately, so this device may be a part of "other".
    else if (parts.some((one) => one.value === "other")) return unknown;
  }
  return { opsPerSecond: all.count / (past.to - from), p99: all.percentile(990_000) ?? (all.count > 0 ? all.max : null) };
}

export function Rail({ feed, route }: { feed: Feed; route: Route }) {
  const shown = route.options.getAll("s");
  const layers = LAYERS.filter((one) => one === "disk" || feed.namesOf(one).length > 0);
  return (
    <aside class="rail" aria-label="Sources">
      {layers.map((layer) => (
        <Sources
          key={layer}
          title={capitalized(DEVICES[layer])}
          layer={layer}
          names={feed.namesOf(layer)}
          feed={feed}
          shown={shown}
        />
      ))}
      <p class="note">A click shows one source; Shift+click adds a source.</p>
    </aside>
  );
}

interface SourcesProps {
  title: string;
  layer: Layer;
  names: string[];
  feed: Feed;
  shown: string[];
}

function Sources({ title, layer, names, feed, shown }: SourcesProps) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{title}</th>
          <th scope="col">ops/s</th>
          <th scope="col" title="of the last 10 s; if there were fewer than 100 I/Os, the longest latency">
            p99
          </th>
        </tr>
      </thead>
      <tbody>
        {names.map((name) => (
          <Source key={name} layer={layer} name={name} feed={feed} shown={shown} />
        ))}
      </tbody>
    </table>
  );
}

function Source({ layer, name, feed, shown }: { layer: Layer; name: string; feed: Feed; shown: string[] }) {
  const statistic: Statistic = { layer, metric: "latency", conditions: [`device=${name}`], by: "op" };
  const question = written(statistic);
  const { opsPerSecond, p99 } = lately(feed, layer, name);
  const hasRule = feed.rules.some((rule) => rule.disk === name && isInForce(rule));
  const show = (event: MouseEvent): void => {
    event.preventDefault();
    const options = new URLSearchParams();
    const others = event.shiftKey ? shown.filter((one) => one !== question) : [];
    for (const one of [...others, question]) options.append("s", one);
    go({ view: "worksheet", options });
  };
  return (
    <tr class={shown.includes(question) ? "chosen" : ""}>
      <th scope="row">
        {hasRule && <i class="armed" role="img" aria-label="a rule is armed" title="a rule is armed" />}
        <a href={`#worksheet?s=${encodeURIComponent(question)}`} onClick={show} title={name}>
          {cut(name, 13)}
        </a>
      </th>
      <td>{opsPerSecond === null ? UNKNOWN : rate(opsPerSecond)}</td>
      <td>{latency(p99)}</td>
    </tr>
  );
}

// The title of a panel: its statistic as a sentence, with parts that the reader can remove or change.

import type { Feed } from "../model/feed";
import {
  DEVICES,
  deviceOf,
  isOfNumbers,
  LAYERS,
  nameOf,
  phraseOf,
  type Statistic,
  sentence,
  subjectOf,
  without,
  written,
} from "../model/statistic";
import { cut } from "../words";

interface TitleProps {
  feed: Feed;
  statistic: Statistic;
  change: (next: Statistic | null) => void;
  add: (next: Statistic) => void;
  children: preact.ComponentChildren;
}

export function Title({ feed, statistic, change, add, children }: TitleProps) {
  const dimensions = feed.dimensionsOf(statistic.layer);
  return (
    <header class="panel-title">
      <h2>{subjectOf(statistic)}</h2>
      {statistic.conditions.map((condition) => {
        const { before, value } = phraseOf(condition);
        return (
          <span class="chip" key={condition}>
            {before} <b title={value}>{cut(value, 24)}</b>
            <button
              aria-label={`Without ${before} ${value}`}
              title="Take this condition out"
              onClick={() => change(without(statistic, condition))}
            >
              ×
            </button>
          </span>
        );
      })}
      {statistic.metric !== "offset" && (
        <label class="breaks">
          broken down by{" "}
          <select
            value={statistic.by ?? ""}
            onChange={(event) => change({ ...statistic, by: event.currentTarget.value || null })}
          >
            <option value="">nothing</option>
            {dimensions.map(({ word, meaning }) => (
              <option key={word} value={word} title={meaning}>
                {nameOf(word)}
              </option>
            ))}
          </select>
        </label>
      )}
      <span class="also">
        Ask also{" "}
        {questions(feed, statistic).map(([words, next]) => (
          <button key={words} class="link" title={sentence(next)} onClick={(event) => (event.altKey ? change(next) : add(next))}>
            {words}
          </button>
        ))}
      </span>
      <span class="space" />
      {children}
      <button class="plain" aria-label={`Close ${sentence(statistic)}`} title="Close this panel" onClick={() => change(null)}>
        ×
      </button>
    </header>
  );
}

/** The related questions that a panel offers: the layer above or below, then the breakdowns that usually show
 *  most. */
function questions(feed: Feed, statistic: Statistic): [string, Statistic][] {
  const { layer, metric, by } = statistic;
  const found: [string, Statistic][] = [];
  for (const other of LAYERS.filter(
    (one) => one !== layer && feed.namesOf(one).length > 0 && feed.metricsOf(one).some((has) => has.word === metric),
  )) {
    // Leave out conditions on the device, the client, the rule and the lane: these differ between layers. Leave out
    // what the other layer does not know, too.
    const known = feed.dimensionsOf(other).map((has) => has.word);
    const conditions = statistic.conditions.filter(
      (one) => !/^(device|client|rule|lane)[=!]/.test(one) && known.some((word) => new RegExp(`^${word}[=!<>]`).test(one)),
    );
    found.push([
      `of ${DEVICES[other]}`,
      { layer: other, metric, conditions, by: by === "device" || !known.some((word) => word === by) ? null : by },
    ]);
  }
  if ((by !== "op" || isOfNumbers(metric)) && !statistic.conditions.some((one) => one.startsWith("op=")))
    found.push(["by type", { ...statistic, metric: "ops", by: "op" }]);
  if (by !== "device" && deviceOf(statistic) === null) found.push([`by ${layer}`, { ...statistic, metric: "ops", by: "device" }]);
  const who = feed.dimensionsOf(layer).some((one) => one.word === "client") ? "client" : "process";
  if (by !== who) found.push([`by ${who}`, { ...statistic, metric: "ops", by: who }]);
  if (!isOfNumbers(metric)) found.push(["by latency", { ...statistic, metric: "latency", by: by === "latency" ? null : by }]);
  const own = written(statistic);
  return found.filter(([, next]) => written(next) !== own).slice(0, 4);
}

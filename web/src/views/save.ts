// A worksheet as one HTML file, with pictures and their data. A browser can show the file without any host. The file's
// security policy forbids all scripts and all loading, and every word in the file is escaped.

import { csv, download, escape, svg } from "../heatmap/export";
import { makeGrid, type View } from "../heatmap/grid";
import { countsOf, unitOf } from "../heatmap/panel";
import type { Feed } from "../model/feed";
import { isOfNumbers, type Statistic, sentence, written } from "../model/statistic";
import { plural } from "../words";

/** Saves the panels as the page shows them. */
export function saveAsHtml(feed: Feed, statistics: Statistic[], view: View): void {
  const past = feed.past!;
  const [from, to] = [view.from, view.to].map((second) => new Date(past.wall(second)).toISOString());
  const html = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="default-src 'none'">
<title>dashpot, ${from}</title></head><body>
<h1>dashpot</h1>
<p>${from} to ${to}, of ${escape(location.host)}. ${view.step > 1 ? `A column is ${plural(view.step, "second")}.` : ""}</p>
${statistics.map((one) => section(feed, one, view)).join("\n")}
</body></html>
`;
  download(`dashpot-${from!.slice(0, 19).replace(/:/g, "")}.html`, new Blob([html], { type: "text/html" }));
}

function section(feed: Feed, statistic: Statistic, view: View): string {
  const past = feed.past!;
  const series = feed.follower!.of(written(statistic));
  const grid = isOfNumbers(statistic.metric) ? makeGrid(past, feed.layout!, series, view, "log", 0, []) : null;
  const table = grid ?? countsOf(past, series, view, unitOf(statistic));
  const known = table.columns.filter((column) => column.known === "known").length;
  const unknown =
    known < table.columns.length
      ? `<p>${known} of ${table.columns.length} columns are known; the picture shows the others as empty, and the data leaves them out.</p>`
      : "";
  return `<h2>${escape(sentence(statistic))}</h2>
${svg({ statistic, table, grid, past, unit: series.unit, colour: "log" })}
${unknown}<p><code>${escape(written(statistic))}</code></p>
<details><summary>Data</summary><pre>${escape(csv({ table, grid, past }))}</pre></details>`;
}

// Measures a redraw of 3,600 × 64 cells: the page's own heat map beside that of ECharts, in one run of Chromium. Prints
// the number of cells with I/Os, and the medians in ms, as JSON.
// node tests/redraw.mjs PATH/TO/echarts.min.js: `npm install echarts` elsewhere; the page does not need it.
import { readFile } from "node:fs/promises";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const [COLUMNS, ROWS, ROUNDS] = [3_600, 64, 9];
const [echarts] = process.argv.slice(2);
const own = await build({
  stdin: { contents: 'export { paint } from "./src/heatmap/paint";', resolveDir: "." },
  bundle: true,
  format: "iife",
  globalName: "own",
  write: false,
});
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu"],
});
const page = await browser.newPage();
await page.setContent('<canvas width="1200" height="400"></canvas><div style="width:1200px;height:400px"></div>');
await page.addScriptTag({ content: own.outputFiles[0].text });
await page.addScriptTag({ content: await readFile(echarts, "utf8") });
const times = await page.evaluate(
  ({ COLUMNS, ROWS, ROUNDS }) => {
    // About one cell in five has I/Os, in bands, as a disk's latencies do.
    const counts = new Float64Array(COLUMNS * ROWS).map((_, at) =>
      at % ROWS < 24 && (at * 7_919) % 100 < 48 ? (at % 90) + 1 : 0,
    );
    const columns = Array.from({ length: COLUMNS }, (_, from) => ({ from, known: "known", count: 1, dropped: 0 }));
    const edges = Array.from({ length: ROWS + 1 }, (_, row) => 1_000 * 1.26 ** row);
    const grid = {
      view: { from: 0, to: COLUMNS, step: 1 },
      rows: { scale: "log", edges },
      columns,
      counts,
      parts: [],
      values: new Map(),
      most: 90,
    };
    const canvas = document.querySelector("canvas");
    const context = canvas.getContext("2d");
    const look = { dark: false, colour: "log", most: 90, enhance: false, hues: [], everySeconds: 300, firstSecond: 0 };
    const chart = echarts.init(document.querySelector("div"));
    const data = [...counts].flatMap((count, at) => (count > 0 ? [[Math.floor(at / ROWS), at % ROWS, count]] : []));
    const axis = (length) => ({ type: "category", data: Array.from({ length }, (_, at) => at) });
    const median = (draw) => {
      const each = Array.from({ length: ROUNDS }, () => {
        const begun = performance.now();
        draw();
        return performance.now() - begun;
      });
      return each.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)];
    };
    // Reading a pixel back makes the browser finish the drawing; otherwise ECharts would draw a part for each frame.
    const page = median(() => {
      own.paint(canvas, grid, look);
      context.getImageData(0, 0, 1, 1);
    });
    const peer = median(() => {
      chart.clear();
      chart.setOption({
        animation: false,
        xAxis: axis(COLUMNS),
        yAxis: axis(ROWS),
        visualMap: { min: 1, max: 90, show: false },
        series: [{ type: "heatmap", data, progressive: 0 }],
      });
      chart.getZr().flush();
      document.querySelector("div canvas").getContext("2d").getImageData(0, 0, 1, 1);
    });
    return { cells: data.length, page, peer };
  },
  { COLUMNS, ROWS, ROUNDS },
);
await browser.close();
console.log(JSON.stringify(times));

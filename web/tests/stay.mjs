// Opens the page of a daemon in Chromium and stays there: node tests/stay.mjs ADDRESS. Shows its views in
// turn, until a signal ends it. Says when the first I/Os are drawn; ends with 1 if the page throws.
import { chromium } from "playwright-core";

const [address] = process.argv.slice(2);
// Most of the time the worksheet is in view.
const VIEWS = ["worksheet?span=3600", "worksheet?span=60", "control", "worksheet", "pools", "worksheet", "proof"];
const EACH_MS = 5_000;

const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
page.on("pageerror", fail);

function fail(reason) {
  console.error(String(reason));
  process.exit(1);
}

await page.goto(address);
await page.waitForFunction(() => Number(document.querySelector(".plot")?.dataset.count) > 0);
console.log("the page shows I/Os");
for (let turn = 0; ; turn++) {
  await page.waitForTimeout(EACH_MS);
  await page.evaluate(
    (view) => {
      location.hash = view;
    },
    VIEWS[turn % VIEWS.length],
  );
}

// Measures how long an hour of a panel takes to load: node tests/hour.mjs ADDRESS STATISTIC. The source at ADDRESS has an
// hour of seconds, and its clock stands still. Prints JSON: `opened` is the time from when the page is opened,
// and `chosen` the time from when the key for an hour is pressed, both until the frame that shows all I/Os,
// in ms.
import { chromium } from "playwright-core";

const [address, statistic] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--headless", "--no-sandbox", "--disable-gpu"],
});

/** Opens the page with a span of this many seconds, in a window that is wide enough for columns of single seconds. */
async function open(seconds) {
  const page = await browser.newPage({ viewport: { width: 1920, height: 1080 } });
  await page.addInitScript(() =>
    addEventListener(
      "keydown",
      () => {
        window.pressedAt = performance.now();
      },
      { capture: true },
    ),
  );
  await page.goto(`${address}&worksheet?span=${seconds}&s=${encodeURIComponent(statistic)}`);
  return page;
}

/** Waits for the frame that shows this many I/Os. Returns its time by the page's clock. */
function shown(page, count) {
  return page.evaluate(
    (count) =>
      new Promise((resolve) => {
        const look = () => {
          const drawn = document.querySelector(".plot")?.dataset.count;
          if (Number(drawn) >= count) requestAnimationFrame(() => resolve(performance.now()));
          else requestAnimationFrame(look);
        };
        look();
      }),
    count,
  );
}

/** Waits until the number of the hour's I/Os no longer grows, and returns it. */
async function settled() {
  const page = await open(3_600);
  const count = () => page.evaluate(() => Number(document.querySelector(".plot")?.dataset.count ?? 0));
  let [last, same] = [0, 0];
  while (same < 20) {
    await page.waitForTimeout(100);
    const now = await count();
    same = now > 0 && now === last ? same + 1 : 0;
    last = now;
  }
  await page.close();
  return last;
}

const count = await settled();
const whole = await open(3_600);
const opened = await shown(whole, count);
await whole.close();
const minute = await open(60);
await minute.waitForFunction(() => Number(document.querySelector(".plot")?.dataset.count) > 0);
await minute.keyboard.press("h");
const chosen = (await shown(minute, count)) - (await minute.evaluate(() => window.pressedAt));
await browser.close();
console.log(JSON.stringify({ count, opened, chosen }));

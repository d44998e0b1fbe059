// Looks at the page of a daemon in Chromium: node look.mjs SCENARIO ADDRESS [ARGUMENT…]
// Ends with 0 if the page does what the scenario says; otherwise it prints the reason.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [scenario, address, ...rest] = process.argv.slice(2);
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"];

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: FLAGS });
const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
const complaints = [];
const asked = [];
page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
page.on("pageerror", (error) => complaints.push(String(error)));
page.on("response", async (answer) => {
  if (answer.status() >= 400) console.error(answer.status(), answer.url(), await answer.text().catch(() => ""));
});
page.on("request", (request) => asked.push(request.url()));

const counted = (more = 0) =>
  page.waitForFunction((least) => Number(document.querySelector(".plot")?.dataset.count) > least, more);
const text = (selector) => page.locator(selector).first().innerText();

/** The daemon's time, in seconds since 1970. */
async function now() {
  const { origin, hash } = new URL(address);
  const headers = { Authorization: `Bearer ${new URLSearchParams(hash.slice(1)).get("token")}` };
  const clock = await (await fetch(`${origin}/v1/clock`, { headers })).json();
  return Math.floor(clock.unix_ns / 1e9);
}

/** Sends a signal to all processes of the browser. */
async function stopBrowser(signal) {
  const children = await readFile(`/proc/${process.pid}/task/${process.pid}/children`, "utf8");
  for (const pid of children.trim().split(" ")) process.kill(-pid, signal);
}

/** The lines of the CSV file that the first panel saves. */
async function saved() {
  await page.locator(".menu-of-panel summary").first().click();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).first().click()]);
  return (await readFile(await file.path(), "utf8"))
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => line.split(","));
}

/** The seconds in which that file has I/Os, counted from 1970. */
async function savedSeconds() {
  return [...new Set((await saved()).map(([time]) => time))].map((time) => Math.round(Date.parse(time) / 1_000));
}

/** Saves the file repeatedly until its last second is at least `second`, and less than a minute after `second`.
 *  Returns the seconds of the file. */
async function savedUpTo(second) {
  for (;;) {
    const seconds = await savedSeconds();
    if (seconds.at(-1) >= second && seconds.at(-1) < second + 60) return seconds;
    // The panel has nothing new before its next second, and Chromium stops downloads that follow each other at once.
    await counted(Number(await page.locator(".plot").first().getAttribute("data-count")));
  }
}

const scenarios = {
  /** The page loads under its security policy, sends requests to its own daemon only, and keeps the token out
   *  of its address. */
  async loads() {
    await page.goto(address);
    await counted();
    const { origin } = new URL(address);
    assert.deepEqual(
      asked.filter((url) => !url.startsWith(`${origin}/`)),
      [],
    );
    assert.ok(!page.url().includes("token"), page.url());
    assert.ok(
      asked.every((url) => !url.includes("token")),
      "the token is in an address",
    );
    await page.reload();
    await counted();
    assert.deepEqual(complaints, []);
  },

  /** The card shows the figures of a cell, and the keyboard can move to the cell. */
  async tells() {
    await page.goto(address);
    await counted(20);
    // Press again, because a key press before the first frame is drawn finds no listener.
    for (let tries = 0; tries < 50 && !(await page.locator(".card").isVisible()); tries += 1) {
      await page.keyboard.press("m");
      await page.waitForTimeout(100);
    }
    const said = await text(".card");
    assert.match(said, /I\/Os in this cell\s+[1-9]/);
    assert.match(said, /at or above/);
    assert.equal(await text(".segments [aria-pressed=true]"), "Paused");
    await page.keyboard.press("0");
    await page.keyboard.press("Escape");
    for (const key of ["y", "c", "c", "E", "1", "+", "[", "]", "0"]) await page.keyboard.press(key);
    assert.deepEqual(complaints, []);
  },

  /** The page explains a wrong and a missing token, and works with the right one. */
  async refuses() {
    const { origin, hash } = new URL(address);
    await page.goto(`${origin}/#token=0123456789abcdef`);
    await page.getByText("This link’s token is not the daemon’s.").waitFor();
    await page.getByLabel("Link or token").fill(`${origin}/${hash}`);
    await page.getByRole("button", { name: "Use it" }).click();
    await counted();
    await page.evaluate(() => sessionStorage.clear());
    await page.goto(`${origin}/#worksheet`);
    await page.reload();
    await page.getByText("This link has no token.").waitFor();
  },

  /** The page explains a link that it cannot read, and a link to a disk that is gone. */
  async explains() {
    const { origin, hash } = new URL(address);
    const links = ["disk.ops[latncy]", "disc.ops", "disk.latency[device=gone]"];
    await page.goto(`${origin}/${hash}&worksheet?${links.map((one) => `s=${encodeURIComponent(one)}`).join("&")}`);
    await page.getByText("did you mean 'latency'?").waitFor();
    await page.getByText("There is no layer disc").waitFor();
    await page.getByText("It is not part of this lab now").waitFor();
    await page.getByRole("button", { name: "Open without this panel" }).first().click();
    await page.getByText("did you mean 'latency'?").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Open without this panel" }).click();
    await page.getByText("There is no layer disc").waitFor({ state: "detached" });
    // The browser itself logs the refused question.
    assert.deepEqual(
      complaints.filter((one) => !one.includes("status of 422")),
      [],
    );
  },

  /** The page shows words of rules and links as text, even if they contain HTML. */
  async escapes() {
    const { origin, hash } = new URL(address);
    const link = `s=${encodeURIComponent(`disk.latency[device=${rest[0]}]`)}`;
    await page.goto(`${origin}/${hash}&worksheet?${link}`);
    await page.locator(".panel-title").getByTitle(rest[0], { exact: true }).waitFor();
    await page.locator(".bracket.rule").waitFor();
    assert.match(await page.locator(".bracket.rule").getAttribute("title"), /<img src=x/);
    assert.equal(await page.evaluate(() => window.hit), undefined);
    assert.equal(await page.locator("img, main script").count(), 0);
    assert.deepEqual(complaints, []);
  },

  /** The page reports that its daemon is gone, and works with the next one, which has another token and another page. */
  async returns() {
    await page.goto(address);
    await counted();
    process.stdout.write("seen\n");
    await page.getByText("No contact").first().waitFor();
    process.stdout.write("lost\n");
    const tag = { status: 200, headers: { ETag: '"of another version"' } };
    await page.route("**/page.js", (route) => (route.request().method() === "HEAD" ? route.fulfill(tag) : route.continue()));
    const link = await new Promise((resolve) => process.stdin.once("data", (data) => resolve(String(data).trim())));
    await page.goto(link);
    await page.getByText("the daemon was started again").waitFor();
    await page.locator(".contact.live").waitFor();
    await page.getByText("this page belongs to the version before it").waitFor();
    process.stdin.unref();
  },

  /** The axis zooms to a rectangle, with narrower rows, and the page counts the I/Os that it leaves out. */
  async zooms() {
    await page.goto(address);
    await counted(200);
    const box = await page.locator(".plot").boundingBox();
    await page.mouse.move(box.x + 4, box.y + box.height - 40);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height - 60, { steps: 4 });
    await page.mouse.move(box.x + box.width - 2, box.y + box.height - 120, { steps: 4 });
    await page.mouse.up();
    const [, range] = /, ([\d.]+ \S+ – [\d.]+ \S+), beside/.exec(await text(".drawer .note"));
    const whole = await saved();
    await page.getByRole("button", { name: "Zoom to them" }).click();
    const said = await text(".panel .state:has(button)");
    assert.ok(said.startsWith(`Zoomed to ${range}:`), `${said} ${range}`);
    const [outside, all] = /: (.+) I\/Os? of (.+) outside/
      .exec(said)
      .slice(1)
      .map((number) => Number(number.replace(/\D/g, "")));
    const zoomed = await saved();
    const sum = (lines) => lines.reduce((total, line) => total + Number(line.at(-1)), 0);
    assert.ok(sum(zoomed) > 0 && outside > 0, said);
    assert.equal(sum(zoomed) + outside, all);
    const lowest = Math.min(...zoomed.map(([, , from]) => Number(from)));
    const narrowest = (lines) =>
      Math.min(...lines.filter(([, , from]) => Number(from) >= lowest).map(([, , from, below]) => below - from));
    assert.ok(narrowest(zoomed) < narrowest(whole), "the rows are not narrower");
    await page.keyboard.press("m");
    const flagged = async () => {
      const [number, unit] = (await text(".gutter .flag")).split(/\s/);
      return Number(number) * { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 }[unit];
    };
    const before = await flagged();
    await page.keyboard.press("V");
    const away = (await flagged()) / before;
    assert.ok(away > 0.75 && away < 1.3, `the cursor went to ${away} times its number`);
    await page.locator(".panel .state:has(button)").waitFor({ state: "detached" });
    // On a busy host, the daemon may count more I/Os of the shown seconds later.
    assert.ok(sum(await saved()) >= all);
    assert.deepEqual(complaints, []);
  },

  /** A browser that sleeps, as on a laptop that was closed, reads what it has missed. */
  async sleeps() {
    await page.goto(address);
    await counted(20);
    const begun = await now();
    await stopBrowser("SIGSTOP");
    while ((await now()) < begun + 6) await new Promise((resolve) => setTimeout(resolve, 100));
    await stopBrowser("SIGCONT");
    await page.locator(".contact.live").waitFor();
    const seconds = await savedUpTo(begun + 7);
    const gaps = seconds.slice(1).filter((second, at) => second !== seconds[at] + 1);
    assert.deepEqual(gaps, [], `seconds ${seconds}`);
    assert.deepEqual(complaints, []);
  },

  /** The page notes jumps of the wall clock, forward and back, and no second is lost or shown twice. */
  async jumps() {
    let [ahead, seconds] = [0, []];
    await page.route("**/v1/clock", async (route) => {
      const answer = await route.fetch();
      const clock = await answer.json();
      await route.fulfill({ response: answer, json: { ...clock, unix_ns: clock.unix_ns + ahead } });
    });
    await page.goto(address);
    await counted(20);
    for (const [jump, words] of [
      [3600e9, "the clock went forward"],
      [0, "the clock went back"],
    ]) {
      const begun = await now();
      ahead = jump;
      await page.getByText(words).first().waitFor({ state: "attached" });
      seconds = await savedUpTo(begun + jump / 1e9 + 3);
    }
    await page.locator(".contact.live").waitFor();
    const jumped = seconds.filter((second) => second > seconds.at(-1));
    assert.ok(jumped.length >= 2, `seconds ${seconds}`);
    assert.equal(new Set(seconds).size, seconds.length, `seconds ${seconds}`);
    assert.deepEqual(complaints, []);
  },

  /** A delay that the user arms with the mouse is seen in the live map, and can be cleared. */
  async arms() {
    await page.goto(address);
    await counted();
    await page.getByRole("link", { name: "Control" }).click();
    await page.getByRole("button", { name: "New rule on d", exact: true }).click();
    await page.getByLabel("Takes").fill("50");
    await page.getByRole("button", { name: "Arm for 60s" }).click();
    // The picture of the expected effect may have the same words, so this looks only at the status.
    await page.locator(".disks [role=status]", { hasText: "has no unit" }).waitFor();
    await page.getByLabel("Takes").fill("50ms");
    await page.getByLabel("Lanes").fill("");
    await page.locator(".expected tr", { hasText: /^expected50\.0 ms/ }).waitFor();
    await page.route(/\/rules$/, async (request) => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      await request.continue();
    });
    await page.getByRole("button", { name: "Arm for 60s" }).dblclick();
    await page.getByText("Armed on d").waitFor();
    await page
      .getByRole("button", { name: /^Clear rule/ })
      .nth(1)
      .waitFor();
    assert.equal(await page.getByRole("button", { name: /^Clear rule/ }).count(), 2, "one rule is the daemon's, one is new");
    // The rule that came over TCP has a lease, and that of the command line has none.
    await page.getByText("its lease lapses in").waitFor();
    await page.getByRole("button", { name: /^Renew rule/ }).click();
    await page.getByText("is renewed").waitFor();
    await page.getByRole("link", { name: "Worksheet" }).click();
    await page.locator(".bracket.rule.open[title*='50ms']").waitFor();
    await page.waitForFunction(() =>
      / p99 [4-9]\d\.\d ms/.test(document.querySelector(".margin")?.getAttribute("aria-label") ?? ""),
    );
    await page.getByRole("link", { name: "Control" }).click();
    await page
      .getByRole("button", { name: /^Clear rule/ })
      .last()
      .click();
    await page.getByText("is cleared").waitFor();
  },

  /** On a path disk, the page offers rules only for the types of calls with which the program was started. */
  async holds() {
    await page.goto(`${address}&control`);
    await page.getByRole("button", { name: "New rule on wal", exact: true }).click();
    const offered = await page.getByLabel("Operations").locator("option").allTextContents();
    assert.deepEqual(offered, ["all", "sync", "open"]);
    await page.getByRole("button", { name: "Arm for 60s" }).click();
    await page.getByText("Armed on wal").waitFor();
    assert.deepEqual(complaints, []);
  },

  /** The form arms a rule that damages data, and says why the daemon refuses one. A line from the test says that the
   *  rule has damaged a write; then the page marks the disk, and shows what is wrong. */
  async damages() {
    await page.goto(`${address}&control`);
    const effect = async (name) => {
      await page.getByRole("button", { name: "New rule on d", exact: true }).click();
      await page.getByLabel("Effect").selectOption(name);
      await page.getByRole("button", { name: "Arm for 60s" }).click();
    };
    await effect("lie about flushes");
    await page.locator(".disks [role=status]", { hasText: "give the disk a lossy:ram store" }).waitFor();
    await effect("drop writes");
    await page.getByText("Armed on d: --drop -T write,trim,zero --for 60s").waitFor();
    assert.equal(await page.getByText("data damaged by rules").count(), 0);
    await page.getByText("0 damaged of 0").waitFor();
    process.stdout.write("armed\n");
    await page.getByText("1 damaged of 1").waitFor();
    await page.locator(".wiring").getByText("damaged").waitFor();
    await page.getByRole("button", { name: /^data damaged by rules, 4.096 bytes wrong/ }).click();
    await page.getByText("Rules damaged 1 I/O").waitFor();
    const cells = (name) => page.getByRole("table", { name }).locator("tbody td").allInnerTexts();
    const plain = (texts) => texts.map((one) => one.replace(/\s/g, ""));
    assert.deepEqual(plain(await cells("Wrong now")), ["8192", "4096"]);
    assert.deepEqual(plain(await cells("The last damaged I/Os")).slice(1, 6), ["1", "drop", "write", "8192", "4K"]);
    assert.deepEqual(
      complaints.filter((one) => !one.includes("status of 422")),
      [],
    );
  },

  /** The form has every effect of a rule, and the daemon takes each as the form has it. */
  async offers() {
    await page.goto(`${address}&control`);
    await page.getByRole("button", { name: "New rule on d", exact: true }).click();
    const effects = await page.getByLabel("Effect").locator("option").allTextContents();
    await page.getByRole("button", { name: "Cancel" }).click();
    const refused = [];
    for (const effect of effects) {
      await page.getByRole("button", { name: "New rule on d", exact: true }).click();
      await page.getByLabel("Effect").selectOption(effect);
      if (effect === "error") await page.getByLabel("After").fill("300ms");
      await page.getByRole("button", { name: "Arm for 60s" }).click();
      const said = page.locator(".disks [role=status]", { hasText: / / });
      await said.waitFor();
      if (!(await said.innerText()).startsWith("Armed on d")) refused.push(effect);
    }
    assert.deepEqual(refused, ["short calls"]);
    const { origin, hash } = new URL(address);
    const headers = { Authorization: `Bearer ${new URLSearchParams(hash.slice(1)).get("token")}` };
    const rules = await (await fetch(`${origin}/v1/rules`, { headers })).json();
    assert.deepEqual(
      rules.map(({ rule }) => rule.replace(/ -T.*/, "")),
      ["-D 20ms:1", "-D 300ms -e EIO", "--hang", "--bandwidth 100M", "--drop", "--lie", "--torn 512", "--corrupt flip"],
    );
  },

  /** The page cuts the power of a disk only after the user has typed its name, and reports the loss. */
  async crashes() {
    await page.goto(`${address}&control`);
    await page.getByRole("button", { name: "Cut the power: d", exact: true }).click();
    const cut = page.getByRole("button", { name: "Cut the power", exact: true });
    await page.getByLabel("Type d to confirm").fill("D");
    assert.ok(await cut.isDisabled(), "another name is enough");
    await page.getByLabel("Type d to confirm").fill("d");
    await cut.click();
    await page.getByText("The power of d was cut: 2 writes lost (12 K), of 2 writes that no flush had covered.").waitFor();
    assert.equal(await page.locator("dialog[open]").count(), 0);
    assert.deepEqual(complaints, []);
  },

  /** For a rectangle around the slow I/Os, the page names the differences that `rest` lists after the
   *  statistic. */
  async compares() {
    const [statistic, ...found] = rest;
    await page.goto(`${address}&worksheet?span=60&s=${encodeURIComponent(statistic)}`);
    // Of 1,500 I/Os 75 are slow. With fewer than 30 slow I/Os, dashpot would not name what they have in common.
    await counted(1_500);
    const box = await page.locator(".plot").boundingBox();
    // The map covers 10 µs to 1 s, so its upper third has the I/Os that take more than 20 ms.
    await page.mouse.move(box.x + 4, box.y + 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 4, { steps: 4 });
    await page.mouse.move(box.x + box.width - 2, box.y + box.height / 3, { steps: 4 });
    await page.mouse.up();
    await page.locator(".finding").waitFor();
    const said = await text(".drawer");
    for (const words of found) assert.ok(said.includes(words), said);
    await page.getByRole("button", { name: "List the I/Os" }).click();
    await page.locator(".ios tbody tr").first().waitFor();
    await page.getByRole("button", { name: /^only/ }).click();
    await page.locator(".chip").waitFor();
    await counted();
    assert.deepEqual(complaints, []);
  },

  /** Prints the figures of a panel that has this many I/Os, for the test to compare with the command line's. */
  async figures() {
    const [statistic, least] = rest;
    await page.goto(`${address}&worksheet?s=${encodeURIComponent(statistic)}`);
    await counted(least - 1);
    await page.getByRole("button", { name: "Paused" }).click();
    const { p50, p90, p99, max } = await page.locator(".margin").evaluate((element) => ({ ...element.dataset }));
    await page.locator(".menu-of-panel summary").click();
    const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
    const csv = await readFile(await saved.path(), "utf8");
    const count = csv
      .trim()
      .split("\n")
      .slice(1)
      .reduce((sum, line) => sum + Number(line.split(",").at(-1)), 0);
    for (const kind of ["SVG", "PNG"]) {
      await page.locator(".menu-of-panel summary").click();
      const [picture] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: kind }).click()]);
      assert.ok((await readFile(await picture.path())).length > 1_000, kind);
    }
    const [sheet] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save as HTML" }).click(),
    ]);
    await page.goto(`data:text/html;base64,${(await readFile(await sheet.path())).toString("base64")}`);
    assert.equal(await page.locator("svg").count(), 1);
    assert.equal((await page.locator("pre").textContent()).trim(), csv.trim());
    assert.deepEqual(complaints, []);
    process.stdout.write(JSON.stringify({ count, p50, p90, p99, max }));
  },

  /** Five clicks lead from slow volumes to the volume whose writes are amplified. */
  async walks() {
    await page.goto(address);
    await counted(20);
    let clicks = 0;
    const click = async (panel, name) => {
      clicks += 1;
      await page.locator(".panel", { hasText: panel }).last().getByRole("button", { name, exact: true }).click();
    };
    const panel = (name) => page.getByRole("region", { name, exact: true }).waitFor();
    await panel("Volume operations by latency, broken down by type");
    await click("Volume operations by latency", "of disks");
    await panel("Disk operations by latency, broken down by type");
    await click("Disk operations by latency", "by type");
    await panel("Disk operations, broken down by type");
    await page.locator(".panel").nth(2).locator(".value").first().waitFor();
    clicks += 1;
    await page
      .getByRole("region", { name: "Disk operations, broken down by type", exact: true })
      .getByRole("button", { name: "of volumes", exact: true })
      .click();
    const volumes = page.getByRole("region", { name: "Volume operations, broken down by type", exact: true });
    await volumes.waitFor();
    const scales = await page.locator(".gutter.low span:last-child").allInnerTexts();
    assert.equal(new Set(scales).size, 1, `one scale: ${scales}`);
    clicks += 1;
    await volumes.getByText("write", { exact: true }).hover();
    await volumes.getByRole("button", { name: "Only write" }).click();
    await panel("Volume operations of type write, broken down by device");
    clicks += 1;
    await page.locator("a.factor", { hasText: /^×16/ }).click();
    await page.getByText(/Each write to tank\/db1 becomes 16.0 blocks: its clients write 128 K, its block size is 8 K/).waitFor();
    assert.equal(clicks, 5);
    assert.deepEqual(complaints, []);
  },

  /** The page of a source other than a daemon names the source and its devices, and has no view of rules. */
  async views() {
    const [words, device] = rest;
    await page.goto(address);
    await counted(10);
    await page.getByText(words).first().waitFor();
    assert.equal(await page.getByRole("link", { name: "Control" }).count(), 0);
    await page.locator(".rail").getByText(device, { exact: true }).waitFor();
    await page.goto(`${new URL(address).origin}/#control`);
    await page.getByText("Control is for the disks of a daemon.").waitFor();
    await page.getByRole("link", { name: "Open its worksheet" }).click();
    await counted(10);
    assert.deepEqual(complaints, []);
  },

  /** If a recording vanishes, the page says so, and keeps what it has read. */
  async vanishes() {
    await page.goto(address);
    await counted(10);
    await page.getByText("is shown to its end").waitFor();
    process.stdout.write("seen\n");
    await page.getByText("The recording cannot be read any more:").waitFor();
    assert.ok(Number(await page.locator(".plot").first().getAttribute("data-count")) > 10);
  },

  /** The accessibility checker finds no faults, in both themes. */
  async passes() {
    const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await page.goto(address);
      await page.reload();
      await counted();
      for (const view of ["Worksheet", "Control", "Pools", "Proof"]) {
        await page.getByRole("link", { name: view }).click();
        await page.locator("h1", { hasText: view }).waitFor();
        if (view === "Control") await page.getByRole("button", { name: "New rule on d", exact: true }).click();
        const found = await page.evaluate(`(() => { ${axe}; return axe.run(); })()`);
        const told = found.violations.map(
          (one) =>
            `${one.id}: ${one.nodes
              .map((node) => node.html)
              .slice(0, 3)
              .join(" ")}`,
        );
        assert.deepEqual(told, [], `${view}, ${colorScheme}`);
      }
    }
  },

  /** Saves pictures of all views, for a person to look at. */
  async pictures() {
    const [directory] = rest;
    for (const [name, width, height] of [
      ["1280", 1280, 720],
      ["1920", 1920, 1080],
      ["phone", 390, 844],
    ]) {
      for (const colorScheme of ["light", "dark"]) {
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme });
        await page.goto(address);
        await page.reload();
        await counted();
        await page.waitForTimeout(1_500);
        await page.screenshot({ path: `${directory}/${name}-${colorScheme}.png` });
        await page.goto(`${address}&control`);
        await page
          .getByRole("button", { name: /^New rule/ })
          .first()
          .click();
        await page.screenshot({ path: `${directory}/${name}-${colorScheme}-control.png` });
        for (const view of ["pools", "proof"]) {
          await page.goto(`${address}&${view}`);
          await page.locator("table").first().waitFor();
          await page.waitForTimeout(1_500);
          await page.screenshot({ path: `${directory}/${name}-${colorScheme}-${view}.png`, fullPage: true });
        }
      }
    }
  },
};

try {
  await scenarios[scenario]();
} finally {
  await browser.close();
}

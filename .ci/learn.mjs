// Uses the page that learns as a person does, in Chromium from the disk: `node .ci/learn.mjs FOLDER [PICTURES]`, after
// `npm install --no-save playwright-core axe-core`. FOLDER has learn.html and cases.json (tests/test_learn_page.py writes
// both): tables, with the target and the kinds that a user says. The files that the page saves go to FOLDER, by the name of
// the table, with what it shows. Looks for sideways scrolling, requests, errors, and for what axe finds.
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { open } from "./chromium.mjs";

const [folder, pictures] = process.argv.slice(2);
const cases = JSON.parse(await readFile(join(folder, "cases.json"), "utf8"));
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await open();
const problems = new Set();
let where = "";
const problem = (text) => problems.add(`${where}: ${text}`);

/** A tab that shows the page from the disk; whatever it asks of a network, or complains about, is a problem. */
async function shown(options) {
  const context = await browser.newContext({ permissions: ["clipboard-read", "clipboard-write"], ...options }), tab = await context.newPage();
  tab.on("console", (message) => ["error", "warning"].includes(message.type()) && problem(message.text()));
  tab.on("pageerror", (error) => problem(error.message));
  tab.on("dialog", (dialog) => (problem(`a dialog: ${dialog.message()}`), dialog.dismiss()));
  tab.on("request", (request) => /^(file|data|blob|about):/.test(request.url()) || problem(`asked for ${request.url()}`));
  await tab.goto(pathToFileURL(resolve(folder, "learn.html")).href);
  return tab;
}

/** Press Tab until an element has the focus, and shows it. */
async function tabTo(tab, id) {
  for (let steps = 0; steps < 30; steps++) {
    await tab.keyboard.press("Tab");
    const [at, seen] = await tab.evaluate(() => [document.activeElement.id, getComputedStyle(document.activeElement).outlineStyle !== "none"]);
    if (!seen) problem(`the focus of ${at} is not shown`);
    if (at === id) return;
  }
  problem(`Tab does not come to ${id}`);
}

/** Give the page a table, by a file or as cells and then by the keyboard, and let it learn; return the calculator in its frame. */
async function learned(tab, { file, target, said = {}, pasted, signs }) {
  if (pasted) {
    await tab.locator("#pasted").evaluate((field) => { // so much that the page takes it at once
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", `a,b\n${"1,x\n2,y\n".repeat(15000)}`);
      field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, cancelable: true }));
    });
    await tab.locator("#read-status").getByText("too many for a page").waitFor();
    await tab.locator("#pasted").fill(await readFile(join(folder, file), "utf8"));
    await tabTo(tab, "read");
    await tab.keyboard.press("Enter");
    await tab.locator("#columns").waitFor();
    await tabTo(tab, "target");
    await tab.keyboard.type(target.slice(0, 5));
  } else {
    await tab.locator("#file").setInputFiles(join(folder, file));
    const [again] = await Promise.all([tab.waitForEvent("filechooser"), tab.locator("#file").click()]);
    if (await tab.locator("#file").inputValue()) problem("a file that was changed cannot be chosen again");
    await again.setFiles(join(folder, file));
    await tab.locator("#target").selectOption({ label: target });
  }
  if (signs) await tab.locator("#decimal").selectOption({ label: signs });
  for (const [name, kind] of Object.entries(said)) {
    await tab.waitForSelector("#learn:enabled");
    await tab.locator("#kinds").getByLabel(name, { exact: true }).selectOption(kind);
  }
  await tab.waitForSelector("#learn:enabled");
  if (pasted) await tabTo(tab, "learn").then(() => tab.keyboard.press("Enter"));
  else await tab.locator("#learn").click();
  return calculator(tab);
}

/** Wait until all of the chosen model is shown. */
async function calculator(tab) {
  await tab.waitForFunction(() => document.querySelector("#terms").dataset.done === "true", null, { timeout: 300000 });
  const frame = await (await tab.locator("#calculator").elementHandle()).contentFrame();
  await frame.waitForSelector('#answer[aria-busy="false"]', { timeout: 300000 });
  return frame;
}

async function saved(tab, button, path) {
  const [download] = await Promise.all([tab.waitForEvent("download"), tab.locator(button).click()]);
  await download.saveAs(join(folder, path));
}

for (const one of cases) {
  where = one.name;
  let tab = await shown({ viewport: { width: 1280, height: 900 } });
  await learned(tab, one);
  const chosen = await tab.locator("#candidates label").allTextContents(), told = [];
  for (let place = 0; place < chosen.length; place++) {
    if (place) await tab.locator("#candidates input").nth(place).check();
    const frame = await calculator(tab), name = `${one.name}-${place}`;
    await saved(tab, "#save-model", `${name}.safetensors`);
    await saved(tab, "#save-page", `${name}.html`);
    await saved(tab, "#save-rows", `${name}.csv`);
    await tab.locator("#copy").click();
    await tab.locator("#made-status").getByText("Copied.").waitFor();
    await writeFile(join(folder, `${name}.py`), await tab.evaluate(() => navigator.clipboard.readText()));
    told.push({ label: chosen[place], now: await frame.locator("#now").textContent(), rows: await tab.locator("#table tbody tr").count() });
  }
  await writeFile(join(folder, `${one.name}.json`), JSON.stringify({ told, order: await tab.locator("#order").textContent() }));
  await tab.context().close();
  for (const [width, colorScheme] of one.looks ?? []) {
    where = `${one.name} at ${width} pixels, ${colorScheme}`;
    tab = await shown({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true }); // axe is a script of ours
    const frame = await learned(tab, one);
    for (const [place, of] of [["page", tab], ["calculator", frame]]) {
      const wider = await of.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wider > 0) problem(`the ${place} is wider than its window by ${wider}`);
      await of.evaluate(axe);
      for (const { id, impact, nodes } of (await of.evaluate(() => globalThis.axe.run({ iframes: false }))).violations)
        problem(`axe in the ${place}, ${impact}: ${id}: ${nodes.map(({ target }) => target)}`);
    }
    if (pictures) await tab.screenshot({ path: join(pictures, `${one.name}-${width}-${colorScheme}.png`), fullPage: true });
    await tab.context().close();
  }
}
await browser.close();
for (const one of problems) console.log(one);
console.log(`tables: ${cases.length}, problems: ${problems.size}`);
process.exit(problems.size ? 1 : 0);

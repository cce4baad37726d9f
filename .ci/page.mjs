// Uses pages that `bayesgen page` wrote as a person does, in Chromium from the disk: `node .ci/page.mjs FOLDER [PICTURES]`, after
// `npm install --no-save playwright-core axe-core`. FOLDER has the pages and cases.json, which tells what Python answers
// (tests/test_page_in_browser.py writes both). Enters cases and reads the bars, answers the best question until a class is
// above 95 %, enters far numbers by the keyboard alone, moves shares, pastes a table, prints; looks for sideways scrolling at
// 320 to 1920 pixels, for requests, for errors, and for what axe finds serious. A folder for PICTURES gets screenshots and
// the print.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { open } from "./chromium.mjs";

const [folder, pictures] = process.argv.slice(2);
const cases = JSON.parse(await readFile(join(folder, "cases.json"), "utf8"));
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await open();
const problems = [], counts = { cases: 0, questions: 0, sure: 0, pages: 0 };
let where = "", largest = 0;
const problem = (text) => problems.push(`${where}: ${text}`);

/** A tab that shows a page from the disk; whatever it asks of a network, or complains about, is a problem. */
async function shown(page, options) {
  const context = await browser.newContext(options), tab = await context.newPage();
  tab.on("console", (message) => ["error", "warning"].includes(message.type()) && problem(message.text()));
  tab.on("pageerror", (error) => problem(error.message));
  tab.on("dialog", (dialog) => (problem(`a dialog: ${dialog.message()}`), dialog.dismiss()));
  tab.on("request", (request) => /^(file|data|blob):/.test(request.url()) || problem(`asked for ${request.url()}`));
  await tab.goto(pathToFileURL(resolve(folder, page)).href);
  await settled(tab);
  return tab;
}

const settled = (tab) => tab.waitForSelector('#answer[aria-busy="false"]', { timeout: 300000 });

/** Enter a row by keyboard and mouse, null to take an entry back. */
async function enter(tab, row) {
  for (const [name, value] of Object.entries(row)) {
    const j = await tab.evaluate((name) => page.columns.findIndex((column) => column.name === name), name);
    const entry = tab.locator(".entry").nth(j);
    const back = entry.locator(".back"), select = entry.locator("select"), radio = entry.locator("[type=radio]");
    const place = () => tab.evaluate(([j, value]) => page.columns[j].choices.findIndex((one) => one.value === value), [j, value]);
    if (value === null) (await back.isVisible()) && (await back.click());
    else if (await radio.count()) await radio.nth(await place()).check();
    else if (await select.count()) await select.selectOption(String(await place()));
    else await entry.locator("input").fill(String(value));
  }
  await settled(tab);
}

/** The probability of each class, as wide as its bar. */
async function bars(tab, classes) {
  const found = await tab.locator("#bars li").evaluateAll((all) => all.map((li) => [
    li.querySelector(".name").textContent, parseFloat(li.querySelector(".fill").style.width) / 100]));
  return classes.map((label) => Object.fromEntries(found)[label]);
}

function same(found, expected, what) {
  const distance = Math.max(...expected.map((p, k) => Math.abs(p - (found[k] ?? NaN))));
  if (!(distance < 2e-6)) problem(`${what}: ${found} in the page, ${expected} in Python`); // a width has six digits
  else largest = Math.max(largest, distance);
}

/** Enter a far number or the first choice everywhere by the keyboard alone: Tab comes to each entry, and numbers are doubted. */
async function byKeyboard(tab, generative) {
  await tab.locator("#clear").press("Enter");
  await settled(tab);
  if (generative === (await tab.locator("#next").isHidden())) problem("the next questions are shown to the wrong model");
  if (!generative && !(await tab.locator("#now").textContent()).startsWith("Still needed")) problem("what is missing is not told");
  let numbers = 0;
  for (let j = 0; j < (await tab.locator(".entry").count()); j++) {
    const [there, type, seen] = await tab.evaluate((j) => {
      const one = document.activeElement;
      return [document.querySelectorAll(".entry")[j].contains(one), one.type, getComputedStyle(one).outlineStyle !== "none"];
    }, j);
    if (!there || !seen) problem(`Tab does not come to entry ${j}, or does not show it`);
    if (type === "text") await tab.keyboard.type("-9e9");
    else await tab.keyboard.press(type === "radio" ? "Space" : "ArrowDown");
    numbers += type === "text";
    for (const _ of ["to the button that takes it back", "to the next entry"]) await tab.keyboard.press("Tab");
  }
  await settled(tab);
  const notes = (await tab.locator(".note").allTextContents()).filter((words) => words.startsWith("Outside the usual range"));
  if (notes.length !== numbers) problem(`${notes.length} of ${numbers} numbers far out are doubted`);
  if (generative && !(await tab.locator("#unusual.warned").count())) problem("no warning of a case like nothing seen");
  const text = tab.locator(".entry input[type=text]").first();
  await text.fill("12 abc");
  await settled(tab);
  if ((await text.getAttribute("aria-invalid")) !== "true") problem("12 abc is taken as a number");
}

for (const { page, classes, rows, answers, priors, moved } of cases) {
  where = page;
  let tab = await shown(page, { viewport: { width: 1280, height: 900 } });
  for (const [i, row] of rows.entries()) {
    await enter(tab, row);
    same(await bars(tab, classes), answers[i], `row ${i}`);
    counts.cases += 1;
  }

  if (priors) {
    await enter(tab, rows[0]);
    await tab.locator("#elsewhere summary").click();
    await tab.locator("#share-0").evaluate((slider) => { slider.value = 1; slider.dispatchEvent(new Event("input")); });
    await settled(tab);
    same(await bars(tab, classes), moved, "other shares");
    await tab.locator("#learned").click();
    await settled(tab);
    same(await bars(tab, classes), answers[0], "the shares that were learned");
  }

  await tab.locator("#clear").click();
  await settled(tab);
  for (let left = priors ? 12 : 0; left > 0; left -= 1) { // a row of which nothing is known: answer the best question
    const row = rows[rows.length - 1], question = tab.locator("#questions button").first();
    if (Math.max(...(await bars(tab, classes))) > 0.95) { counts.sure += 1; break; }
    if (!(await question.count())) break;
    await question.click();
    const name = await tab.evaluate(() => {
      const all = [...document.querySelectorAll(".entry")];
      return page.columns[all.findIndex((one) => one.contains(document.activeElement))]?.name;
    });
    if (!(name in row)) { problem(`the best question leads to ${name}`); break; }
    await enter(tab, { [name]: row[name] });
    counts.questions += 1;
  }

  await byKeyboard(tab, priors);

  await tab.locator("#cases summary").click();
  const names = Object.keys(rows[0]);
  const lines = rows.map((row, i) => ["=1+" + i, ...names.map((name) => row[name] ?? "")].join("\t"));
  await tab.locator("#pasted").fill([["id", ...names].join("\t"), ...lines].join("\n"));
  await tab.locator("#answer-all").click();
  await tab.locator("#download").waitFor();
  const [download] = await Promise.all([tab.waitForEvent("download"), tab.locator("#download").click()]);
  const text = (await readFile(await download.path(), "utf8")).replace("\ufeff", "");
  const table = text.trim().split("\r\n").map((line) => line.split(","));
  if (table.length !== rows.length + 1) problem(`${table.length - 1} rows in the file of ${rows.length}`);
  if (table[1][1] !== "'=1+0") problem(`a formula in the file: ${table[1][1]}`);
  rows.forEach((row, i) => answers[i] && same(table[i + 1].slice(3, 3 + classes.length).map(Number), answers[i], `row ${i} of the file`));
  if (pictures) await tab.pdf({ path: join(pictures, `${page}.pdf`), format: "A4" });
  else await tab.emulateMedia({ media: "print" });
  await tab.context().close();

  for (const [width, colorScheme] of [[320, "light"], [1280, "light"], [1280, "dark"], [1920, "light"]]) {
    where = `${page} at ${width} pixels, ${colorScheme}`;
    tab = await shown(page, { viewport: { width, height: 900 }, colorScheme, bypassCSP: true }); // axe is a script of ours
    await enter(tab, rows[0]);
    for (const one of await tab.locator("summary:visible").all()) await one.click();
    const wider = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wider > 0) problem(`wider than the window by ${wider}`);
    await tab.evaluate(axe);
    for (const { id, impact, nodes } of (await tab.evaluate(() => globalThis.axe.run())).violations)
      problem(`axe, ${impact}: ${id}: ${nodes[0].target}`);
    if (pictures) await tab.screenshot({ path: join(pictures, `${page}-${width}-${colorScheme}.png`), fullPage: true });
    await tab.context().close();
    counts.pages += 1;
  }
}
await browser.close();
for (const one of [...new Set(problems)]) console.log(one);
console.log(`cases: ${counts.cases}, largest difference: ${largest.toExponential(1)}, best questions answered: ${counts.questions}, ` +
  `keys that end above 95 %: ${counts.sure}, looks: ${counts.pages}, problems: ${new Set(problems).size}`);
process.exit(problems.length ? 1 : 0);

// The pictures of the two calculators: `python docs/calculators.py FOLDER && node docs/calculators.mjs FOLDER` draws
// docs/pictures/ward.png and key.png, after `npm install --no-save playwright-core`.
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { open } from "../.ci/chromium.mjs";

const entries = { ward: { texture: "17,9", area: "640" }, key: { "bill length": "39.1", island: "Dream" } };
const browser = await open();
for (const [name, known] of Object.entries(entries)) {
  const tab = await browser.newPage({ viewport: { width: 1080, height: 860 } });
  await tab.goto(pathToFileURL(resolve(process.argv[2], `${name}.html`)).href);
  for (const [label, value] of Object.entries(known)) {
    const entry = tab.locator(".entry", { has: tab.locator(".label", { hasText: new RegExp(`^${label}$`) }) });
    if (await entry.locator("[type=radio]").count()) await entry.locator(".choice", { hasText: value }).click();
    else await entry.locator("input").fill(value);
  }
  await tab.locator("#answer[aria-busy=false]").waitFor();
  await tab.evaluate(() => document.activeElement.blur());
  const { height } = await tab.locator("main").boundingBox();
  await tab.screenshot({ path: `docs/pictures/${name}.png`, clip: { x: 0, y: 0, width: 1080, height: Math.min(860, height) } });
}
await browser.close();

// Looks at the built site as a reader does, in Chromium at 390 and 1280 pixels: no error in the console, nothing that did
// not load, no page wider than its window, every picture described, and a search that finds what people ask for:
// `node .ci/site.mjs [FOLDER] [PICTURES]`, after `npm install --no-save playwright-core`; the browser is that of the
// system, or of $CHROMIUM. A folder for PICTURES gets a screenshot of each page. `PAGES=report node .ci/site.mjs report`
// looks at the page that `bayesgen compare --output report` wrote.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";
import { open } from "./chromium.mjs";

const [folder = "docs/_build/html", pictures] = process.argv.slice(2);
const pages = (process.env.PAGES ?? "index howto howto/command-line howto/decide howto/determination-key howto/key howto/ward howto/from-scikit-learn api " +
  "api/bayesgen.NaiveBayesClassifier mathematics/naive-bayes mathematics/gaussian-discriminant tutorials/7-workflow " +
  "comparison reliability scaling ecosystem design").split(" ").map((page) => `${page}.html`);
const searches = { csv: "howto/", "command line": "howto/command-line", "reject option": "howto/decide" };
const kinds = { ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml" };

const server = createServer(async (request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url, "http://site").pathname));
  try {
    const content = await readFile(join(folder, path));
    response.writeHead(200, { "Content-Type": kinds[extname(path)] ?? "application/octet-stream" }).end(content);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const site = `http://127.0.0.1:${server.address().port}`;
const browser = await open();

const problems = [];
for (const width of [390, 1280]) {
  const tab = await browser.newPage({ viewport: { width, height: 900 } });
  let where = "";
  tab.on("console", (message) => message.type() === "error" && problems.push(`${where}: ${message.text()}`));
  tab.on("pageerror", (error) => problems.push(`${where}: ${error.message}`));
  tab.on("response", (answer) => answer.status() >= 400 && problems.push(`${where}: no ${answer.url()}`));
  for (const page of pages) {
    where = `${page} at ${width} pixels`;
    await tab.goto(`${site}/${page}`, { waitUntil: "load" });
    await tab.waitForTimeout(500); // formulas
    const found = await tab.evaluate(() => {
      const scrolled = (e) => e && (getComputedStyle(e).overflowX !== "visible" || scrolled(e.parentElement));
      const wide = [...document.querySelectorAll("main *")].filter(
        (e) => e.getBoundingClientRect().right > innerWidth + 1 && !scrolled(e));
      return {
        page: document.documentElement.scrollWidth - innerWidth,
        wide: wide.slice(0, 3).map((e) => `${e.tagName}.${e.className} ${e.textContent.slice(0, 40)}`),
        silent: [...document.querySelectorAll("main img")].filter((e) => !e.alt || /_images|[.]png$/.test(e.alt)).length,
      };
    });
    if (found.page > 0) problems.push(`${where}: wider than the window by ${found.page}`);
    for (const one of found.wide) problems.push(`${where}: off the page: ${one}`);
    if (found.silent) problems.push(`${where}: ${found.silent} pictures without a description`);
    if (pictures) await tab.screenshot({ path: join(pictures, `${width}-${page.replaceAll("/", "-")}.png`) });
  }
  for (const [words, expected] of Object.entries(process.env.PAGES ? {} : searches)) {
    where = `search for "${words}" at ${width} pixels`;
    await tab.goto(`${site}/search.html?q=${encodeURIComponent(words)}`);
    const first = tab.locator("#search-results li a").first();
    await first.waitFor({ timeout: 15000 }).catch(() => {});
    await tab.waitForTimeout(1500);
    const links = await tab.locator("#search-results li a").evaluateAll((all) => all.map((a) => a.getAttribute("href")));
    const place = links.findIndex((link) => link.includes(expected));
    if (place < 0 || place > 4) problems.push(`${where}: ${expected} is not among the first five of ${links.length}`);
  }
  await tab.close();
}
await browser.close();
server.close();
for (const problem of [...new Set(problems)]) console.log(problem);
console.log(`pages at two widths: ${pages.length}, problems: ${new Set(problems).size}`);
process.exit(problems.length ? 1 : 0);

// The page that learns: a table, its columns, the models of them in order, and the files of the one that is chosen.
(() => {
  const KINDS = { number: "numbers", category: "categories", count: "counts", bool: "yes or no", unused: "not used" };
  const SIGNS = [[".", ""], [".", ","], [",", ""], [",", "."]], SHOWN = 200, Z = 1.96, PARTS = ["columns", "models", "made"];
  const percent = (p) => `${p < 0.001 ? "< 0.1" : p > 0.999 ? "> 99.9" : (100 * p).toFixed(p < 0.0995 || p > 0.9905 ? 1 : 0)}\u00a0%`;
  const shown = (part) => PARTS.forEach((id, place) => ($(id).hidden = place >= part)); // so many parts
  let table, file, turn = 0, said = new Map(), signs = null, read = null, found = null, models = [];

  /** Do some work by steps, unless newer work begins, and tell at a place what came of it; `mine` is the turn of the work. */
  async function work(place, steps, mine = (turn += 1)) {
    const tell = (words) => ($(place).textContent = words);
    const pause = () => new Promise((go, stop) => setTimeout(() => (mine === turn ? go() : stop(null))));
    tell("At work …");
    try {
      tell((await steps(pause)) ?? "");
    } catch (error) {
      if (error) tell(error.message);
    }
  }

  /** Read a table of a file, or of cells that were pasted. */
  const take = (name, content) => work("read-status", async (pause) => {
    shown(0);
    await pause();
    [table, file] = [readTable(await content(), page), name];
    const options = table.names.map((one, j) => element("option", { value: String(j) }, one));
    $("target").replaceChildren(element("option", { value: "" }, "(choose)"), ...options);
    for (const id of ["kinds", "learn-status"]) $(id).replaceChildren();
    $("decimal").value = "";
    $("learn").disabled = $("signs").hidden = true;
    shown(1);
    return `${table.rows} rows, ${table.names.length} columns.`;
  });
  const takeFile = (given) => given && take(given.name, () => {
    if (given.size > MOST.bytes) throw new Error(TOO_LARGE);
    return given.text();
  });
  $("read").onclick = () => take("pasted.csv", () => $("pasted").value);
  $("pasted").onpaste = (event) => {
    const text = event.clipboardData.getData("text");
    if (text.length > 1e5) event.preventDefault(), take("pasted.csv", () => text); // a field of so many lines is slow
  };
  $("file").onclick = () => ($("file").value = ""); // so that a file which was changed can be chosen again
  $("file").onchange = () => takeFile($("file").files[0]);
  document.ondragover = (event) => event.preventDefault();
  document.ondrop = (event) => (event.preventDefault(), takeFile(event.dataTransfer.files[0]));

  /** Read the columns beside the target by what was said of them, and tell what was made of each. */
  function readColumns(anew) {
    shown(1);
    $("learn").disabled = true;
    if ($("target").value === "") return;
    work("learn-status", async (pause) => {
      await pause();
      const [decimal, thousands] = SIGNS[$("decimal").value] ?? [];
      read = columnsFor(table, table.names[$("target").value], said, decimal ? { decimal, thousands, doubtful: [] } : {});
      signs = { sep: table.sep, ...read.signs };
      $("signs").hidden = !decimal && !signs.doubtful.length;
      $("doubtful").textContent = signs.doubtful.length ? `Two readings: ${signs.doubtful.join(", ")}.` : "";
      if (anew) $("kinds").replaceChildren(...read.columns.map(({ name }, j) => {
        const options = Object.entries(KINDS).map(([value, words]) => element("option", { value }, words));
        const select = element("select", { id: `kind-${j}`, "aria-describedby": `told-${j}` }, ...options);
        select.onchange = () => (said.set(name, select.value), readColumns(false));
        const label = element("label", { className: "label", htmlFor: select.id }, name);
        const help = element("p", { className: "help", id: `told-${j}` });
        return element("div", { className: "entry" }, label, element("div", {}, select, help));
      }));
      read.columns.forEach(({ kind, told }, j) => ([$(`kind-${j}`).value, $(`told-${j}`).textContent] = [kind, told]));
      $("learn").disabled = false;
      const { classes, codes } = read.target, gone = codes.filter((k) => k < 0).length, more = classes.length > 9 ? " …" : "";
      const lost = gone ? ` ${gone} rows without a class are left out.` : "";
      return `${classes.length} classes: ${classes.slice(0, 9).join(", ")}${more}.${lost}`;
    });
  }
  $("target").onchange = $("decimal").onchange = () => (said.clear(), readColumns(true));

  /** Learn every model that the columns allow, and put them in order. */
  $("learn").onclick = () => work("learn-status", async (pause) => {
    shown(1);
    const { target, columns } = read, used = columns.filter(({ kind }) => kind !== "unused"), refused = [];
    const many = target.classes.length, structures = structuresOf(used, target);
    if (!used.length) throw new Error("No column is left to learn from: say what one of them holds.");
    if (many > 200) throw new Error(`${many} classes are too many for a page: \`bayesgen fit\` learns them.`);
    models = [];
    for (const structure of Object.keys(structures)) {
      await pause();
      try {
        models.push(learn(structure, used, target));
      } catch (error) {
        refused.push(`${structures[structure]}: ${error.message}`);
      }
    }
    if (!models.length) throw new Error(refused.join(" "));
    models.sort((a, b) => a.leftOut.loss - b.leftOut.loss);
    const alone = structures.full ? "" : " One model fits these columns: Gaussians need numbers alone, without a gap.";
    $("order").textContent = `The log loss, smaller is better; the shares of the classes alone have ${models[0].base.toFixed(4)}.${alone}`;
    $("candidates").replaceChildren(...models.map((one, place) => {
      const input = element("input", { type: "radio", name: "model", value: String(place), checked: place === 0 });
      input.onchange = () => choose(one);
      return element("label", { className: "choice" }, input, `${structures[one.structure]}: ${one.leftOut.loss.toFixed(4)}`);
    }));
    shown(2);
    setTimeout(() => choose(models[0]));
    return [`Learned from ${models[0].rows} rows.`, ...refused].join(" ");
  });

  /** Show how well a model predicts, what its columns are worth, and its files. */
  const choose = (learned) => work("models-status", async (pause) => {
    found = { learned, signs, file, columns: read.columns };
    shown(2);
    const { rows, places, columns, target: { classes, codes, name }, leftOut: { probability, loss } } = learned;
    const K = classes.length, lines = places.map((i, r) => {
      const p = Array.from(probability.subarray(r * K, (r + 1) * K)), most = Math.max(...p), best = p.indexOf(most);
      return { p, most, hit: best === codes[i], words: [String(i + 1), classes[codes[i]], classes[best]] };
    });
    const head = ["row", name, "most probable", ...classes];
    const line = (tag, given, cells) => element("tr", {}, ...cells.map((cell) => element(tag, given, cell)));
    const body = lines.slice(0, SHOWN).map(({ p, words }) => line("td", {}, [...words, ...p.map(percent)]));
    $("table").replaceChildren(element("table", {}, element("thead", {}, line("th", { scope: "col" }, head)), element("tbody", {}, ...body)));
    const right = (those) => those.filter(({ hit }) => hit).length, first = rows > SHOWN ? ` The first ${SHOWN} are shown.` : "";
    $("rows-hint").textContent = `Each row as the others predict it: of ${rows}, ${right(lines)} have their class as the most probable.${first}`;
    $("save-rows").onclick = () => {
      const written = ({ p, words }) => [...words, ...p.map((v) => String(v).replace(".", signs.decimal))];
      download("rows-left-out.csv", "text/csv", "\ufeff", fileOf([head, ...lines.map(written)], signs.decimal === "," ? ";" : ","));
    };
    const track = (...parts) => element("span", { className: "track", ariaHidden: "true" }, ...parts.map(([className, left, width]) => {
      const part = element("span", { className });
      if (left !== null) part.style.left = `${100 * left}%`;
      part.style.width = `${100 * width}%`;
      return part;
    }));
    const figure = (...told) => element("span", { className: "figure" }, ...told);
    $("bars").replaceChildren(...Array.from({ length: 10 }, (_, b) => {
      const bin = lines.filter(({ most }) => Math.min(9, Math.floor(10 * most)) === b), n = bin.length, hits = right(bin);
      const mean = bin.reduce((sum, { most }) => sum + most / n, 0), middle = (hits + Z ** 2 / 2) / (n + Z ** 2); // Wilson 1927
      const half = (Z * Math.sqrt((hits * (n - hits)) / n + Z ** 2 / 4)) / (n + Z ** 2), ends = [middle - half, middle + half];
      const between = element("span", { className: "between" }, ` (${percent(ends[0])} to ${percent(ends[1])})`);
      const told = element("span", {}, `${10 * b}–${10 * b + 10}\u00a0%, mean ${percent(mean)}`), whisker = ["whisker", ends[0], 2 * half];
      return n && element("li", {}, told, figure(`${hits} of ${n}`, between), track(["fill", 0, hits / n], whisker, ["said", mean, 0]));
    }).filter(Boolean));
    $("terms").dataset.done = "false";
    $("terms").replaceChildren();
    await pause();
    found.page = await calculatorOf(found);
    await pause();
    $("calculator").srcdoc = found.page;
    $("python").textContent = pythonOf(found);
    shown(3);
    const worth = [];
    for (const j of columns.length > 1 ? columns.keys() : []) {
      await pause();
      worth.push({ name: columns[j].name, worth: learned.without(j) - loss });
    }
    const largest = Math.max(...worth.map((one) => Math.abs(one.worth)), 1e-9);
    $("terms").replaceChildren(...worth.sort((a, b) => b.worth - a.worth).map((one) => {
      const bar = track(["fill", null, (0.5 * Math.abs(one.worth)) / largest]), told = figure(one.worth.toFixed(4).replace("-", "−"));
      return element("li", { className: one.worth < 0 ? "against" : "" }, element("span", {}, one.name), bar, told);
    }));
    $("terms").dataset.done = "true";
  });
  $("save-page").onclick = () => download("calculator.html", "text/html", found.page);
  $("save-model").onclick = () => work("made-status", async () => {
    download("model.safetensors", "application/octet-stream", await savedFile(found));
  }, turn);
  $("copy").onclick = () => work("made-status", async () => {
    getSelection().selectAllChildren($("python"));
    await navigator.clipboard.writeText($("python").textContent).catch(() => { throw new Error("Copy the text that is marked."); });
    return "Copied.";
  }, turn);
})();

// The page around the scorer: `model` and the scorer's functions stand above, `page` holds the options and words of this page.
(() => {
  Object.assign(sentences, page.sentences);
  const say = (key, values) => unread(key, values ?? {}).message;
  const plainly = ({ message, column, far, least }) => ((far ?? least) === undefined ? message : say(far === undefined ? "too_small" : "too_far",
    { column: known.get(column).label, value: written(scored.get(column), far ?? least, signs) }));
  const { classes, columns } = page, known = new Map(columns.map((column) => [column.name, column]));
  const scored = new Map(model.columns.map((column) => [column.name, column])), signs = signsOf(page.language);

  // -- numbers as people write them -----------------------------------------------------------------------------------
  const shown = (value, digits = 4) => grouped(Number(value.toPrecision(digits)), signs, { maximumSignificantDigits: 21 });
  const rounded = (value, places) => grouped(value, signs, { minimumFractionDigits: places, maximumFractionDigits: places });
  const signed = (value) => `${value < 0 ? "−" : "+"}${Number.isFinite(value) ? rounded(Math.abs(value), 1) : "∞"}`;

  /** A probability in percent: neither rounded to certainty nor to impossibility. */
  function percent(p, unit = "\u00a0%") {
    if (p < 0.001) return `< ${rounded(0.1, 1)}${unit}`;
    if (p > 0.999) return `> ${rounded(99.9, 1)}${unit}`;
    return rounded(100 * p, p < 0.0995 || p > 0.9905 ? 1 : 0) + unit;
  }

  /** The value that a text means in a column, undefined where it is empty; throws an Error for a text that means none. */
  function value_of({ name, choices }, text, beside) {
    const column = scored.get(name), stripped = meaningOf(column, text);
    const found = choices && chosen(choices, column, stripped);
    if (found) return found.value;
    if (column.kind === "duration" && /^[^:DP]+$/.test(stripped) && !GAPS.has(stripped.toLowerCase())) return `P${numberOf(column, stripped, signs, ["days"])}D`;
    const value = valueOf(choices ? { ...column, kind: column.kind === "bool" ? "" : "category" } : column, text, signs, beside);
    if (value === null) return undefined;
    if (choices) throw new Error(say("no_choice", { choices: choices.map((choice) => choice.name).join(", ") }));
    if (column.kind === "count" && !(value >= 0 && Number.isInteger(value))) throw new Error(say("no_count"));
    return value;
  }

  /** The choice that a text names: as it stands, or as a code or but for case and blanks around it, where that leaves one. */
  function chosen(choices, column, text) {
    const texts = ({ value, name }) => [String(value), name, ...(column.kind === "bool" ? [String(Boolean(value)), String(Number(value))] : [])];
    const like = (same) => choices.filter((choice) => texts(choice).some(same));
    const [word, code] = [text.toLowerCase(), codeOf(signs.decimal === "," ? text.replace(/^(-?[0-9]+),0+$/, "$1") : text)];
    const [exact] = like((one) => one === text), alike = like((one) => one.trim().toLowerCase() === word || codeOf(one) === code);
    return exact ?? (alike.length === 1 ? alike[0] : undefined);
  }

  // -- what is known ---------------------------------------------------------------------------------------------------
  const entries = columns.filter((column) => column.asked).map((column, j) => {
    const note = element("p", { className: "note", id: `note-${j}`, role: "status" });
    const back = element("button", { type: "button", className: "back", title: say("take_back", { column: column.label }) }, "×");
    back.setAttribute("aria-label", back.title);
    const helps = [column.help, column.range && say("usual_range", ends(column))].filter(Boolean).join(". ");
    const help = helps ? element("p", { className: "help", id: `help-${j}` }, helps) : null;
    const described = [...(help ? [help.id] : []), ...(column.unit ? [`unit-${j}`] : []), note.id].join(" ");
    const unit = column.unit ? element("span", { className: "unit", id: `unit-${j}` }, column.unit) : null;
    let inputs, label, shown_as;
    if (column.choices && column.choices.length <= 7) {
      inputs = column.choices.map((_, i) => element("input", { type: "radio", name: `column-${j}`, value: String(i) }));
      label = element("span", { className: "label", id: `label-${j}` }, column.label);
      shown_as = element("div", { className: "choices", role: "radiogroup", "aria-labelledby": label.id },
        ...inputs.map((input, i) => element("label", { className: "choice" }, input, column.choices[i].name)));
    } else {
      const options = column.choices?.map((choice, i) => element("option", { value: String(i) }, choice.name));
      if (options) shown_as = element("select", {}, element("option", { value: "" }, `(${say("unknown")})`), ...options);
      else if (column.kind === "date") shown_as = element("input", { type: "date" });
      else shown_as = element("input", { type: "text", inputMode: "decimal", autocomplete: "off" });
      shown_as.id = `value-${j}`;
      inputs = [shown_as];
      label = element("label", { className: "label", htmlFor: shown_as.id }, column.label);
    }
    shown_as.setAttribute("aria-describedby", described);
    const field = element("div", { className: "field" }, shown_as, unit, back);
    const box = element("div", { className: "entry" }, element("div", {}, label, help), element("div", {}, field, note));
    const text = () => (inputs[0].type === "radio" ? inputs.find((one) => one.checked)?.value ?? "" : inputs[0].value);
    const read = () => (text() === "" ? undefined : column.choices ? column.choices[text()].value : value_of(column, text(), [column.unit, scored.get(column.name).unit].filter(Boolean)));
    const clear = () => inputs.forEach((one) => (one.type === "radio" ? (one.checked = false) : (one.value = "")));
    back.onclick = () => { clear(); inputs[0].focus(); answer(); };
    inputs.forEach((one) => one.addEventListener(one.type === "text" ? "input" : "change", () => answer()));
    return { column, box, note, back, inputs, text, read, clear };
  });

  function ends({ name, range: [low, high], unit, kind }) {
    const plain = (days) => new Date(days * 864e5).toLocaleDateString(page.language, { timeZone: "UTC" });
    if (kind === "date") return { low: plain(low), high: plain(high) };
    const [least, most] = [low, high].map((end) => written(scored.get(name), end, signs));
    return { low: least, high: unit ? `${most} ${unit}` : most };
  }

  const outside = (column, value) => {
    const size = column.kind === "duration" && value !== undefined ? daysOfSpan(value) : value;
    return column.range && typeof size === "number" && (size < column.range[0] || size > column.range[1]);
  };

  /** The values that can be taken, by column, and true where an entry could not; each entry tells what is wrong with it. */
  function entered() {
    const row = Object.create(null), bad = [];
    for (const { column, box, note, back, inputs, text, read } of entries) {
      let words = "", refused = false;
      try {
        const value = read();
        if (value !== undefined) {
          remarks(Object.assign(Object.create(null), { [column.name]: value })); // or throw
          row[column.name] = value;
          limitOf(scored.get(column.name), text(), row);
          if (outside(column, value)) words = say("outside_range", ends(column));
        }
      } catch (error) {
        [words, refused] = [plainly(error), true];
        bad.push(column);
      }
      if (note.textContent !== words) note.textContent = words;
      inputs.forEach((one) => one.setAttribute("aria-invalid", String(refused)));
      back.hidden = text() === "";
      box.classList.toggle("empty", back.hidden);
    }
    return { row, bad };
  }

  // -- the answer: probabilities at once, the others in idle pieces ------------------------------------------------------
  let shares = null; // of the classes where the reader moved them
  const options = () => (shares ? { priors: shares } : {});
  const named = (k) => classes[k].name;
  const best = (p) => p.indexOf(Math.max(...p));
  const idle = window.requestIdleCallback ?? ((work) => setTimeout(() => work({ timeRemaining: () => 0 }), 0));
  const turns = new Map();

  /** Work through the steps of a generator when the page has time, unless newer steps of that name come. */
  function in_pieces(name, steps) {
    turns.set(name, steps);
    const go = (deadline) => {
      do if (turns.get(name) !== steps || steps.next().done) return;
      while (deadline.timeRemaining() > 1);
      idle(go, { timeout: 200 });
    };
    idle(go, { timeout: 200 });
  }

  function answer() {
    const { row, bad } = entered(), empty = !Object.keys(row).length;
    $("answer").setAttribute("aria-busy", "true");
    let p = null, words;
    try {
      const missing = model.gaps ? [] : columns.filter(({ name }) => !(name in row) && !bad.some((one) => one.name === name));
      if (missing.length) words = say("now_missing", { columns: missing.map((column) => column.label).join(", ") });
      else if (bad.length && !model.gaps) words = say("now_refused");
      else {
        p = predictProba(row, options());
        const key = bad.length ? "now_corrected" : empty ? "now_nothing" : "now";
        words = say(key, { name: named(best(p)), percent: percent(p[best(p)]) });
      }
    } catch (error) {
      words = plainly(error);
    }
    if ($("now").textContent !== words) $("now").textContent = words;
    draw_bars(p, null);
    draw_action(p);
    $("interval-note").textContent = "";
    const told = p ? [...remarks(row), ...(shares ? [say("elsewhere_moved")] : [])] : [];
    $("remarks").replaceChildren(...told.map((words) => element("li", {}, words)));
    in_pieces("answer", further(row, p, empty));
  }

  function* further(row, p, empty) {
    if (p) {
      let note = say(model.interval ? "interval_note" : "no_interval");
      try {
        if (model.interval) draw_bars(p, predictProbaInterval(row, options()));
      } catch (error) { // a value too far out for draws
        note = plainly(error);
      }
      $("interval-note").textContent = note;
      yield;
    }
    draw_terms(row, p, empty);
    yield;
    if (model.generative) {
      const rank = empty ? null : typicality(row), warned = rank !== null && rank < 0.05;
      const words = rank === null ? "" : say(!warned ? "usual" : rank < 0.01 ? "unlike" : "rare", { share: percent(rank) });
      $("unusual").classList.toggle("warned", warned);
      if ($("unusual").textContent !== words) $("unusual").textContent = words;
      yield;
      const found = [];
      let refused = null; // a value too far out for questions
      try {
        for (const one of nextMeasurements(row, { ...options(), ...page.losses, costs: new Map(page.costs) })) {
          if (known.get(one.column)?.asked) found.push(one);
          yield;
        }
      } catch (error) {
        refused = plainly(error);
      }
      draw_questions(found.sort((a, b) => b.value - a.value), refused);
    }
    $("answer").setAttribute("aria-busy", "false");
  }

  function draw_bars(p, between) {
    const order = classes.map((_, k) => k).sort((a, b) => (p ? p[b] - p[a] : 0) || a - b);
    $("bars").replaceChildren(...(p ? order : []).map((k, place) => {
      const fill = element("span", { className: "fill" }), track = element("span", { className: "track", ariaHidden: "true" }, fill);
      fill.style.width = `${100 * p[k]}%`;
      let brackets = null;
      if (between) {
        const [low, high] = between[k], whisker = element("span", { className: "whisker" });
        [whisker.style.left, whisker.style.width] = [`${100 * low}%`, `${100 * (high - low)}%`];
        track.append(whisker);
        const ends = { low: percent(low, ""), high: percent(high, "") };
        brackets = ends.low === ends.high ? null : element("span", { className: "between" }, " ", say("interval", ends));
      }
      const picture = classes[k].picture ? element("img", { src: classes[k].picture, alt: "" }) : null;
      return element("li", { className: place ? "" : "lead" }, element("span", { className: "name" }, picture, element("span", {}, named(k))),
        element("span", { className: "figure" }, percent(p[k]), brackets), track);
    }));
  }

  function draw_action(p) {
    if (!page.losses || !p) return ($("action").textContent = "");
    const { action, losses } = decide(p, page.losses.loss), step = Math.max(...page.losses.loss.flat().map(Math.abs)) / 1000;
    const cost = step && Math.round(losses[action] / step) * step; // a millionth of a cost is none
    $("action").textContent = say("action", { action: page.losses.actions[action], cost: shown(cost || 0, 2) });
  }

  function draw_terms(row, p, empty) {
    $("why").hidden = !p;
    if (!p) return;
    const leader = best(p);
    $("why-title").textContent = say("why", { name: named(leader) });
    const terms = empty ? [] : explain(row, model.classes[leader], options()).filter(({ column }) => known.has(column) && column in row);
    const size = (term) => Math.abs(term.contribution), largest = Math.max(...terms.map(size).filter(Number.isFinite), 1e-9);
    $("terms").replaceChildren(...(terms.length ? terms.sort((a, b) => size(b) - size(a)).map((term) => {
      const fill = element("span", { className: "fill" });
      fill.style.width = `${50 * Math.min(1, size(term) / largest)}%`;
      return element("li", { className: term.contribution < 0 ? "against" : "" }, element("span", {}, known.get(term.column).label),
        element("span", { className: "track", ariaHidden: "true" }, fill), element("span", { className: "figure" }, signed(term.contribution)));
    }) : [element("li", { className: "hint" }, say("why_nothing"))]));
  }

  function draw_questions(found, refused) {
    const telling = found.filter(({ value }) => value > 1e-6);
    $("next-hint").textContent = refused ?? say(!found.length ? "next_done" : !telling.length ? "next_nothing" : page.losses ? "next_hint_loss" : "next_hint");
    $("questions").replaceChildren(...telling.slice(0, 6).map(({ column, value }) => {
      const button = element("button", { type: "button" }, `${known.get(column).label} (${value < 0.001 ? "< " : ""}${shown(Math.max(value, 0.001), 2)})`);
      button.onclick = () => {
        const { inputs, box } = entries.find((entry) => entry.column.name === column);
        inputs[0].focus({ preventScroll: true });
        box.scrollIntoView({ block: "center" });
      };
      return element("li", {}, button);
    }));
  }

  // -- other shares of the classes -----------------------------------------------------------------------------------
  const clipped = (share) => Math.min(Math.max(share, 0.001), 0.999), log_odds = (share) => Math.log(share / (1 - share));
  const sliders = !model.generative ? [] : classes.map((one, k) => {
    const slider = element("input", { type: "range", min: "-6.9", max: "6.9", step: "0.05", id: `share-${k}` });
    const output = element("output", { className: "figure", htmlFor: slider.id });
    slider.oninput = () => {
      const before = shares ?? model.priors, share = 1 / (1 + Math.exp(-slider.value)), others = 1 - before[k];
      shares = before.map((s, j) => (j === k ? share : others > 0 ? (s / others) * (1 - share) : (1 - share) / (classes.length - 1)));
      draw_shares(k);
      answer();
    };
    $("shares").append(element("div", { className: "share" }, element("label", { htmlFor: slider.id }, say("elsewhere_share", { name: one.name })), output, slider));
    return { slider, output };
  });

  /** Show the shares; the slider that a hand holds stays where it is. */
  function draw_shares(held) {
    sliders.forEach(({ slider, output }, k) => {
      const share = (shares ?? model.priors)[k];
      if (k !== held) slider.value = log_odds(clipped(share));
      output.textContent = percent(share);
      slider.setAttribute("aria-valuetext", percent(share));
    });
    $("learned").disabled = !shares;
  }

  // -- several cases -------------------------------------------------------------------------------------------------
  /** The cells of a table, as the file of the fit or another holds it: its first line has the sign. */
  function cells(text) {
    const [first] = /^(?:"[^"]*"|[^\n])*/.exec(text).map((line) => line.replace(/"[^"]*"/g, "")); // its signs, not those of names
    const most = ["\t", ";", ","].reduce((a, b) => (first.split(b).length > first.split(a).length ? b : a));
    const sep = !first.includes("\t") && signs.file && first.includes(signs.sep) ? signs.sep : most;
    return cellsOf(text, sep, (cell) => cell.trim()).filter((row) => row.some((cell) => cell !== ""));
  }

  const SHOWN = 200, between = signs.file ? signs.sep : signs.decimal === "," ? ";" : ","; // cells of the file of answers
  let file = "";

  function* answer_cases() {
    const [heads = [], ...rows] = cells($("pasted").value.replaceAll("\r\n", "\n").replaceAll("\r", "\n"));
    const like = (head) => columns.find((c) => !heads.includes(c.name) && [c.name, c.label].some((one) => one.toLowerCase() === head.toLowerCase()));
    const places = heads.map((head) => columns.find((c) => c.name === head) ?? like(head));
    const status = (words) => ($("cases-status").textContent = words);
    const twice = places.find((column, i) => column && places.indexOf(column) < i), absent = columns.filter((c) => !places.includes(c) && !c.told);
    $("table").hidden = $("download").hidden = true;
    if (!rows.length) return status(say("cases_none"));
    if (twice) return status(say("cases_twice", { column: twice.name }));
    if (!places.some(Boolean)) return status(say("cases_no_column", { columns: columns.map((c) => c.name).join(", ") }));
    const others = heads.map((_, i) => i).filter((i) => !places[i]); // such as names of the cases: carried along
    const table = [[say("case"), ...others.map((i) => heads[i]), say("most_probable"), ...classes.map((one) => one.name),
      ...(page.losses ? [say("do")] : []), say("remark")]];
    let refused = 0;
    for (const [number, row] of rows.entries()) {
      const values = Object.create(null), carried = others.map((i) => row[i] ?? "");
      let answered, words = [];
      try {
        places.forEach((column, i) => {
          if (!column) return;
          try {
            const one = scored.get(column.name), text = row[i] ?? "", value = value_of(column, text, one.unit || !column.unit ? [] : [column.unit]);
            if (value !== undefined) values[column.name] = value;
            limitOf(one, text, values);
            if (outside(column, value)) words.push(`${column.label}: ${say("outside_range", ends(column))}`);
          } catch (error) {
            throw new Error(`${column.label}: ${error.message}`);
          }
        });
        const p = predictProba(values, options());
        words.push(...remarks(values));
        answered = [named(best(p)), ...p.map((one) => String(Number(one.toPrecision(12))).replace(".", signs.decimal)), ...(page.losses ? [page.losses.actions[decide(p, page.losses.loss).action]] : [])];
      } catch (error) {
        [refused, words] = [refused + 1, [plainly(error)]];
        answered = Array(table[0].length - others.length - 2).fill("");
      }
      table.push([String(number + 1), ...carried, ...answered, words.join(" ")]);
      yield;
    }
    file = fileOf(table, between);
    const first = 2 + others.length, last = first + classes.length; // where the probabilities stand
    const line = (tag, cells) => element("tr", {}, ...cells.map((cell, i) => element(tag, tag === "th" ? { scope: "col" } : {},
      tag === "td" && i >= first && i < last && cell !== "" ? percent(Number(cell.replace(",", "."))) : cell)));
    $("table").replaceChildren(element("table", {}, element("thead", {}, line("th", table[0])),
      element("tbody", {}, ...table.slice(1, SHOWN + 1).map((cells) => line("td", cells)))));
    $("table").hidden = $("download").hidden = false;
    status(say(refused ? "cases_refused" : "cases_done", { count: shown(rows.length - refused, 9), refused: shown(refused, 9) })
      + (absent.length ? ` ${say("cases_absent", { columns: absent.map((c) => c.name).join(", ") })}` : "")
      + (rows.length > SHOWN ? ` ${say("cases_shown", { shown: SHOWN })}` : ""));
  }

  $("answer-all").onclick = () => in_pieces("cases", answer_cases());
  $("download").onclick = () => download("answers.csv", "text/csv", "\ufeff", file);

  /** The sentences at the foot: what made the answers, and from what. */
  function about({ rows, date, score, shares, draws, ...told }) {
    const day = new Date(`${date}T00:00:00Z`).toLocaleDateString(page.language, { timeZone: "UTC", dateStyle: "long" });
    const learned = shares?.map((share, k) => `${named(k)} ${percent(share)}`).join(", ");
    return [
      page.footer,
      say(rows === null ? "about_model_unknown" : "about_model", { ...told, date: day, rows: rows === null ? "" : shown(rows, 9) }),
      shares && say("about_shares", { shares: learned }),
      score === null ? null : say("about_score", { score: shown(score, 3), percent: percent(Math.exp(-score)) }),
      draws && say("about_draws", { shipped: shown(draws[0], 9), of: shown(draws[1], 9) }),
      say("about_checksum", told),
      say("about_private"),
    ].filter(Boolean);
  }

  // -- the page ------------------------------------------------------------------------------------------------------
  document.querySelectorAll("[data-say]").forEach((one) => (one.textContent = say(one.dataset.say)));
  $("introduction").textContent = page.introduction;
  const unasked = columns.filter((one) => !one.asked && !one.told).map((one) => one.label);
  $("know-hint").textContent = [say(model.gaps ? "know_hint" : "know_hint_all"), say("signs", { example: rounded(12345.6, 1) }), page.left_out.length ? say("left_out", { columns: page.left_out.join(", ") }) : "",
    unasked.length ? say("not_asked", { columns: unasked.join(", ") }) : ""].filter(Boolean).join(" ");
  $("cases-hint").textContent = say("cases_hint", { columns: columns.map((column) => column.name).join(", ") });
  $("columns").append(...entries.map((entry) => entry.box));
  $("about").append(...about(model.about).map((words) => element("p", {}, words)));
  for (const id of ["next", "elsewhere"]) $(id).hidden = !model.generative;
  $("entries").onsubmit = (event) => event.preventDefault();
  $("clear").onclick = () => { entries.forEach((entry) => entry.clear()); entries[0]?.inputs[0].focus(); answer(); };
  $("print").onclick = () => window.print();
  $("learned").onclick = () => { shares = null; draw_shares(); sliders[0].slider.focus(); answer(); };
  draw_shares();
  answer();
})();

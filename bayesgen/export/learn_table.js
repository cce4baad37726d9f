// ---- a table to learn from ------------------------------------------------------------------------------------------
// One head above rows of as many cells, else refused. The page decides little of a column, and `pythonOf` says all of it to
// Python: its role, and the signs of numbers. What `bayesgen.read_table` would clean away all the same is refused, too.

const LOOK = "`bayesgen look` reads it.", MOST = { rows: 20_000, columns: 200, bytes: 20e6 }, LARGEST = 1e150;
const TOO_LARGE = "more than 20,000 rows, 200 columns or 20 MB are too many for a page: `bayesgen fit` learns from them.";
const FILES_WAYS = [...WAYS.slice(6), ...WAYS.slice(0, 6)].map((way) => ({ ...way, pattern: new RegExp(numeralPattern(way)) }));
const BEGINS = /^[^\p{L}\p{N}_]*[0-9]/u, NUMBER = /^[^\p{L}\p{N}_]*[0-9](?!0\^|0?\/)/u; // which 10^9/l is not

const isGap = (cell) => cell === "" || GAPS.has(cell.trim().toLowerCase());
const textsOf = (cells) => [...new Set(cells)].filter((cell) => !isGap(cell));
const inOrder = (text) => Array.from(text, (c) => c.codePointAt(0).toString(16).padStart(6, "0")).join(""); // as in Python

/** Return the table of a text, or throw; `sums` is the pattern of how a line of sums begins. */
function readTable(text, { sums }) {
  const whole = text.replace(/^\ufeff/, "");
  const check = (fault, why) => { if (fault) throw new Error(why === TOO_LARGE ? why : `${why}: ${LOOK}`); };
  check(whole.length > MOST.bytes || (whole.match(/\r\n?|\n/g) ?? []).length > MOST.rows + 1, TOO_LARGE);
  const foreign = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\ufffd]|^\s*(?:\[\s*)?\{\s*"[^"]*"\s*:/; // signs, and an object
  check(foreign.test(whole), "the file is JSON, or no text in UTF-8");
  const even = [";", "\t", "|", ","].filter((sep) => whole.includes(sep)).map((sep) => {
    let open = false; // a quotation mark that no other ends
    const cells = cellsOf(whole, sep, (cell) => ((open ||= cell.startsWith('"')), cell));
    const rows = cells.filter((row) => row.length > 1 || row[0].trim()), width = rows[0]?.length ?? 0;
    return { sep, rows, fits: width > 1 && !open && rows.every((row) => row.length === width) };
  }).find(({ fits }) => fits);
  check(!even || /^""$/m.test(whole), "the first line must name two columns or more, and every line have as many cells");
  const { sep, rows: [names, ...body] } = even, twice = names.find((name, j) => names.indexOf(name) < j);
  check(!body.length, "the table has a first line, and no rows");
  check(names.length > MOST.columns || body.length > MOST.rows, TOO_LARGE);
  check(names.some((name) => !name.trim()) || names.every((name) => PLAIN.test(name)), "the first line must name every column");
  check(twice !== undefined, `the first line has ${JSON.stringify(twice)} twice`);
  check(body.some((row) => row.every((cell, j) => cell === names[j])), "the first line is there again below");
  check([names, ...body].some((row) => row.some((cell) => cell.startsWith('="'))), "cells hold formulas");
  const above = body[0].filter((cell, j) => !isGap(cell) && NUMBER.test(body[1]?.[j].trim() ?? ""));
  check(above.length && !above.some((cell) => NUMBER.test(cell.trim())), "the second line has units, it seems");
  const begins = new RegExp(sums.replace("(?i)", ""), "i"), filled = body.map((row) => row.filter((cell) => cell.trim()));
  const isSum = ([cell, ...more]) => begins.test(cell) && more.every((one) => /[0-9]/.test(one));
  check(filled.some((row) => row[0] && row.length < names.length && isSum(row)), "a line holds sums or a note, it seems");
  return { names, columns: names.map((_, j) => body.map((row) => row[j])), sep, rows: body.length };
}

/** Return texts of numbers as programs write them, each by the signs of a way; null where one is no number, or has %. */
function plainly(texts, { decimal, thousands, pattern = new RegExp(numeralPattern({ decimal, thousands })) }) {
  const bare = texts.map((text) => text.trim()), fits = (text) => pattern.test(text) && !text.includes("%");
  if (thousands !== "." && bare.every((text) => PLAIN.test(text))) return bare;
  return texts.every(fits) ? texts.map((text) => asPrograms(text, { decimal })) : null;
}

/** Return the first signs that read all columns of numbers, and as `doubtful` the columns that other signs read otherwise. */
function signsOfTable({ names, columns, sep }, apart = []) {
  const looks = names.flatMap((name, j) => {
    const texts = apart.includes(name) ? [] : textsOf(columns[j]);
    const read = FILES_WAYS.map((way) => (texts.length ? plainly(texts, way)?.map(Number) : null));
    return read.some(Boolean) ? [{ name, texts, read }] : [];
  });
  const all = [...FILES_WAYS.keys()].filter((p) => looks.every(({ read }) => read[p])), [place] = all;
  const differ = ({ read }) => all.some((p) => read[p].some((value, i) => value !== read[place][i]));
  const signed = ({ texts }) => texts.some((text) => /[^-+0-9]/.test(text.trim()));
  const { decimal, thousands } = FILES_WAYS[place ?? 0], doubtful = looks.filter(all.length ? differ : signed);
  return { decimal, thousands, doubtful: place === 0 && sep === "," ? [] : doubtful.map(({ name }) => name) };
}

/** Return a column in the role that the user wants or its cells show, by rows that have a label, of codes >= 0. */
function columnOf(name, cells, signs, wanted, labels) {
  const unused = (told) => ({ name, kind: "unused", values: null, codes: null, categories: [], told });
  if (wanted === "unused") return unused("left out, as you say.");
  if (signs.doubtful.includes(name)) return unused("numbers of two readings: say which sign stands before the fraction.");
  const texts = textsOf(cells), bools = texts.every((text) => Object.hasOwn(BOOLS, text.trim()));
  const plain = bools ? texts.map((text) => String(Number(BOOLS[text.trim()]))) : plainly(texts, signs);
  const ofLabelled = (values) => values.filter((_, i) => !labels || labels[i] >= 0);
  if (wanted === "category" || (!wanted && !plain?.every((text) => !/^[+-]?0[0-9]/.test(text)))) { // 01 is a code
    const mixed = !wanted && !plain && 2 * texts.filter((text) => BEGINS.test(text)).length >= texts.length;
    if (mixed) return unused(`numbers beside words, units, limits, % or dates: ${LOOK}`);
    const codes = signs.decimal === "," && cells.every((cell) => isGap(cell) || /^-?[0-9]+(,0+)?$/.test(cell)); // of 1 as 1,0
    const meant = codes ? cells.map((cell) => cell.replace(/,0+$/, "")) : cells, seen = ofLabelled(meant).filter(Boolean);
    const categories = [...new Set(seen)];
    if (categories.length < 2) return unused(seen.length ? `constant, always ${seen[0]}.` : "no value is there.");
    if (!wanted && categories.length >= 0.9 * seen.length) return unused("names of the rows, it seems: few are there twice.");
    const places = new Map(categories.sort((a, b) => (inOrder(a) < inOrder(b) ? -1 : 1)).map((text, place) => [text, place]));
    const found = Int32Array.from(meant, (cell) => places.get(cell) ?? -1);
    return { name, kind: "category", values: null, codes: found, categories, told: `${categories.length} categories.` };
  }
  if (!plain) return unused("it holds others than numbers.");
  const known = new Map(texts.map((text, i) => [text, Number(plain[i])])), whole = plain.every((v) => /^[+-]?[0-9]+$/.test(v));
  const numbers = Float64Array.from(cells, (cell) => (known.get(cell) ?? NaN) + (whole ? 0 : -0)); // no whole number is -0
  const values = numbers.map((v) => (Math.abs(v) > LARGEST ? NaN : v)), seen = ofLabelled(values).filter((v) => !Number.isNaN(v));
  const distinct = new Set(seen).size, dense = [0, 1].includes(Math.min(...seen)) && Math.max(...seen) <= 2 * distinct;
  if (distinct < 2) return unused(distinct ? `constant, always ${seen[0]}.` : "no value is there.");
  if (whole && numbers.some((v) => Math.abs(v) > Number.MAX_SAFE_INTEGER)) return unused(`whole numbers beyond 2^53: ${LOOK}`);
  if (!wanted && whole && dense && distinct > 10 && distinct === seen.length) return unused("numbers of the rows, it seems.");
  const bits = seen.every((v) => v === 0 || v === 1), counts = !bools && seen.every((v) => v >= 0 && Number.isInteger(v));
  const wrong = { bool: !bits && "0 and 1", count: !counts && "the counts 0, 1, 2, ..." }[wanted];
  if (wrong) return unused(`it holds others than ${wrong}.`);
  const kind = bools ? "bool" : (wanted ?? "number"), fraction = cells.some((cell) => cell.includes(signs.decimal));
  const codes = kind === "bool" ? Int32Array.from(values, (v) => (v >= 0 ? v : -1)) : null;
  const told = { bool: "yes or no", count: "counts" }[kind] ?? (bits ? "numbers, 0 and 1 alone" : "numbers");
  const far = texts.filter((text) => Math.abs(known.get(text)) > LARGEST), minus = texts.some((text) => NEGATIVE.test(text));
  const meant = far.length && { meant: Object.fromEntries(far.map((text) => [text.trim(), ""])) };
  const by = bools ? null : { fraction, ...meant }, beyond = far.length ? "; those beyond 1e150 taken as missing." : ".";
  return { name, kind, values, codes, categories: codes ? [false, true] : [], by, minus, told: told + beyond };
}

/** Return the classes of a column of categories, in Python's order, and the class of each row, -1 where it has none. */
function classesOf({ name, kind, categories, codes, told }) {
  if (kind !== "category") throw new Error(`${name} tells no classes: ${told}`);
  const numbers = categories.every((label) => PLAIN.test(label)) && categories.some((label) => Number(label) % 1 !== 0);
  if (numbers) throw new Error(`${name} holds numbers, and a class is one of few: cut them into such as low and high.`);
  return { classes: categories, labels: categories, codes };
}

/** Return the classes of a target, the other columns and the signs, by kinds that are `wanted` and signs that are `said`. */
function columnsFor(table, target, wanted = new Map(), said = {}) {
  const { names } = table, place = names.indexOf(target), lost = table.columns[place].map((label) => !label.trim());
  const without = (cell, i) => (lost[i] && /\p{L}/u.test(cell) ? "" : cell); // of words where no label is, as below the rows
  const columns = table.columns.map((cells, j) => (j === place ? cells : cells.map(without)));
  const apart = names.filter((name) => name === target || ["category", "unused"].includes(wanted.get(name)));
  const signs = { ...signsOfTable({ ...table, columns }, apart), ...said };
  const classes = classesOf(columnOf(target, columns[place], signs, "category"));
  const column = (name, j) => (j === place ? [] : [columnOf(name, columns[j], signs, wanted.get(name), classes.codes)]);
  return { target: { ...classes, name: target }, columns: names.flatMap(column), signs };
}

// ---- files of a model that was learned ------------------------------------------------------------------------------
// The file that `bayesgen.load` reads, the calculator as `to_page` writes it, and the Python that does the same. `found` are
// the model as `learn` returns it, the signs of numbers in the table, its name, and all of its columns.

/** Return a value as JavaScript and JSON have it, of ASCII alone, without a sign that would end a script in a page. */
function literal(value) {
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return `[${value.map(literal)}]`;
  if (value && typeof value === "object") return `{${Object.entries(value).map(([key, one]) => `${literal(key)}:${literal(one)}`)}}`;
  return JSON.stringify(value).replace(/[<\x7f-\uffff]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const bytesIn = async (...parts) => new Uint8Array(await new Blob(parts).arrayBuffer());
async function digestOf(...parts) {
  if (!crypto.subtle) throw new Error("A page makes its files on a disk or by https alone: save it, and open it from there.");
  return new Uint8Array(await crypto.subtle.digest("SHA-256", await bytesIn(...parts)));
}
/** Return the models that columns allow, by their names: all where they are numbers without a gap. */
function structuresOf(columns, { codes }) {
  const complete = ({ kind, values }) => kind === "number" && !values.some((v, i) => codes[i] >= 0 && Number.isNaN(v));
  if (!columns.every(complete)) return { "naive bayes": "Naive Bayes" };
  return { "naive bayes": "Naive Bayes (diagonal Gaussians)", full: "Gaussians, full", shared: "Gaussians, shared" };
}

/** Return the bytes of the sums of all rows, in a file as `bayesgen.files.container.pack` makes it. */
async function savedFile({ learned: { structure, columns, target, statistics }, signs }) {
  const tuple = (items) => ({ tuple: items }), object = (name, fields) => ({ object: name, own: false, fields });
  const discriminant = structure !== "naive bayes";
  const names = (test) => tuple(columns.filter(test).map(({ name }) => name)), K = target.classes.length, arrays = [];
  const array = (shape, values) => {
    arrays.push({ name: `sums.${arrays.length}`, shape, values: Float64Array.from(values) });
    return { array: arrays.at(-1).name };
  };
  const sums = ({ leaf, single, columns: { length: D }, categories, n, mean, scatter, sums: counts, base }) => {
    const several = single ? [] : [D], [rows, joint] = discriminant ? [[K], [D]] : [[K, D], []];
    if (leaf !== "gaussian") return object("SumStatistics", { sums: array([K, ...several, categories?.length ?? 2], counts), base });
    return object("Moments", { n: array(rows, n), mean: array([K, D], mean), scatter: array([K, D, ...joint], scatter) });
  };
  const counts = array([K], statistics.classes), ordered = statistics.blocks.flatMap((block) => block.columns);
  const numbers = ordered.map((name) => columns.find((one) => one.name === name)).filter(({ by }) => by);
  const every = (test) => tuple(numbers.filter(({ values }) => values?.every(test)).map(({ name }) => name));
  const of = ({ name, single, leaf, categories, columns: those }) =>
    object("Block", { name, columns: tuple(those), single, leaf, categories: categories && tuple(categories) });
  const { sep, decimal, thousands } = signs, fractions = { dict: numbers.map(({ name, by }) => [name, by.fraction]) };
  const meant = { dict: numbers.filter(({ by }) => by.meant).map(({ name, by }) => [name, { dict: Object.entries(by.meant) }]) };
  const none = { dict: [] }, unsaid = { units: none, limits: false, dates: none, sheet: "", encoding: "", date_order: "" };
  const schema = object("Schema", {
    columns: names(() => true), blocks: tuple(statistics.blocks.map(of)), bools: names(({ kind }) => kind === "bool"),
    library: "pandas", target: target.name, whole: every((v) => !(v % 1)), unsigned: every((v) => !(v < 0)),
    reading: object("Reading", { ...unsaid, sep, decimal, thousands, fractions, meant, percent: tuple([]), minus: names((one) => one.minus) }),
  });
  const usual = { class_concentration: 1, inference: "exact", prior: "weak", priors: null, random_state: null };
  const features = { dict: columns.filter(({ kind }) => kind === "count").map(({ name }) => [name, "poisson"]) };
  const other = discriminant ? { covariance: "full", shared: structure === "shared" } : { exponent: 1, features, unseen: "missing" };
  const classes = object("SumStatistics", { sums: counts, base: 0 });
  const leaves = { dict: statistics.blocks.map((block) => [block.name, sums(block)]) };
  const statistics_ = object("ClassStatistics", { classes, leaves, squares: counts, schema: "", decayed: false });
  const fitted = { schema_: schema, statistics_, classes_: { labels: target.labels, dtype: "O", shape: [K] } };
  const estimator = discriminant ? "GaussianDiscriminantClassifier" : "NaiveBayesClassifier";
  const parameters = { ...usual, ...other }, format = "estimator", { version: library, format: version } = page;
  const text = literal({ format, version, library, estimator, parameters, fitted });
  const told = ({ name, shape }) => `${name} <f8 (${shape.join(", ")}${shape.length === 1 ? "," : ""})`;
  arrays.sort((a, b) => (a.name < b.name ? -1 : 1));
  const seal = await digestOf(text, ...arrays.flatMap((one) => [told(one), one.values])), head = { __metadata__: { bayesgen: text } };
  let end = 0;
  for (const { name, shape, values } of arrays) head[name] = { dtype: "F64", shape, data_offsets: [end, (end += values.byteLength)] };
  const header = literal({ ...head, sha256: { dtype: "U8", shape: [32], data_offsets: [end, end + 32] } });
  const size = 8 * Math.ceil(header.length / 8);
  return bytesIn(new BigUint64Array([BigInt(size)]), header.padEnd(size), ...arrays.map(({ values }) => values), seal);
}

/** Return the options of a calculator's page, as `page_words` has them where nothing is said. */
function optionsOf({ classes, columns, target, about }) {
  const plainly = (name) => name.replaceAll("_", " ").trim() || name, named = new RegExp(page.names, "i");
  const either = classes.length < 5 ? `${classes.slice(0, -1).join(", ")} or ${classes.at(-1)}?` : `One of ${classes.length} classes`;
  const textOf = (value) => (typeof value === "boolean" ? page.sentences[value ? "yes" : "no"] : String(value));
  const namesRow = ({ name, kind, fraction, categories = [] }) => {
    const long = categories.join("").length > 30 * categories.length, many = categories.length > Math.max(20, about.rows / 4);
    return kind === "category" ? many || (categories.length > 7 && long) : named.test(name) && fraction === false;
  };
  const option = (column) => {
    const { name, kind, range, categories } = column, given = { name, kind, ...(range && { range }) };
    const choices = categories?.map((value) => ({ value, name: textOf(value) }));
    return { ...given, label: plainly(name), ...(choices && { choices }), asked: !namesRow(column) };
  };
  return {
    title: `${plainly(target)}: ${either}`, introduction: "", language: "en", footer: "", classes: classes.map((name) => ({ name })),
    columns: columns.map(option), sentences: page.sentences, losses: null, costs: columns.map(({ name }) => [name, 0]), left_out: [],
  };
}

/** Return the calculator of a model as one page. */
async function calculatorOf({ learned, signs }) {
  const reading = { file: true, sep: signs.sep, missing: [], decimal: signs.decimal, thousands: signs.thousands };
  const { about, ...made } = learned.record({ reading, version: page.version, date: new Date().toISOString().slice(0, 10) });
  const checksum = Array.from(await digestOf(literal(made)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const model = { ...made, about: { ...about, checksum } }, options = optionsOf(model);
  const head = `// ${about.model}, a classifier of bayesgen ${about.version}, exported on ${about.date}.\n"use strict";\n\nconst model = {\n`;
  const numbers = Object.entries(model).map(([name, value]) => `  ${name}: ${literal(value)},\n`).join("");
  const script = `${head}${numbers}};\n${page.functions}\nconst page = ${literal(options)};\n${page.calculator}`;
  const script_hash = `sha256-${btoa(String.fromCharCode(...(await digestOf(script))))}`;
  const shown = options.title.replace(/[\x00-\x1f\x7f]+/g, " ").replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return page.frame.replace(/\$(title|script_hash|script)\b/g, (_, name) => ({ title: shown, script, script_hash })[name]);
}

/** Return the Python that learns the same from the file, and writes the same table of the rows left out. */
function pythonOf({ learned: { structure, target }, signs, file, columns }) {
  const roles = { number: "number", categorical: "category", bernoulli: "bool", count: "count", drop: "unused" }, text = JSON.stringify;
  const those = (role) => columns.filter(({ kind }) => kind === role).map(({ name }) => text(name)), goal = text(target.name);
  const lists = Object.entries(roles).map(([option, role]) => [option, those(role)]).filter(([, found]) => found.length);
  const options = lists.map(([option, found]) => `${option}=[${found.join(", ")}]`);
  const how = [...options, ...["sep", "decimal", "thousands"].map((name) => `${name}=${text(signs[name])}`)];
  const discriminant = `GaussianDiscriminantClassifier("full"${structure === "shared" ? ", shared=True" : ""})`;
  const made = structure === "naive bayes" ? "NaiveBayesClassifier(account.features)" : discriminant;
  const note = file === "pasted.csv" ? "# pasted.csv: the cells that were pasted, saved as text\n" : "";
  const read = [text(file), goal, ...how].map((one) => `    ${one},\n`).join("");
  return `${note}import pandas as pd\n\nimport bayesgen as bg\n\ntable, account = bg.read_table(\n${read})\n`
    + `X, y = table.drop(columns=${goal}), table[${goal}]\nclassifier = bg.${made}.fit(X, y)\nleft_out = classifier.leave_one_out(X, y)\n`
    + "print(left_out)\nrows = pd.DataFrame(left_out.probability, account.rows + 1, classifier.classes_)\n"
    + 'rows.to_csv("rows-left-out.csv", index_label="row")\n';
}

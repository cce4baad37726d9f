// ---- rows -----------------------------------------------------------------------------------------------------------
// A row is an object by column name; undefined, null, NaN and "" are unknown. Within, it is an array of numbers, a
// category as its place among the categories of its column, and NaN where unknown.

const K = model.classes.length;

/** @returns {Error} an error that knows its column */
function fault(column, text) {
  return Object.assign(new Error(text), { column });
}

/** @returns {Error} of a column, in words that follow its name */
const refusal = ({ name }, words) => fault(name, `column ${shown(name)}: ${words}`);

/** Write a value as Python does: text in quotes, a number by at most six digits. */
function shown(value) {
  if (typeof value === "string") return value.includes("'") && !value.includes('"') ? `"${value}"` : `'${value}'`;
  if (typeof value === "boolean") return value ? "True" : "False";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const [digits, power] = value.toExponential(5).split("e");
  if (Math.abs(power) < 5 || power === "+5") return String(Number(value.toPrecision(6)));
  return `${Number(digits)}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

const isUnknown = (value) => value === undefined || value === null || Number.isNaN(value);
const key = (label) => (typeof label === "boolean" ? Number(label) : label);

for (const column of model.columns) {
  if (column.categories) column.place = new Map(column.categories.map((label, code) => [key(label), code]));
}

/** Return the number that stands for a value of a column, or throw. */
function entry(column, value, remarks) {
  if (isUnknown(value)) return NaN;
  if (column.place) {
    const code = column.place.get(key(value));
    if (code !== undefined) return code;
    if (value === "") return NaN;
    if (column.kind === "category") {
      if (model.unseen === "error") {
        const text = `${shown(value)} in row 0 is not one of the categories ${column.words}`;
        throw refusal(column, text);
      }
      remarks.push(
        "1 value taken as missing, of categories that were not there at fit: " +
          `column ${shown(column.name)}: [${shown(value)}] in 1 row. unseen='error' refuses them`,
      );
      return NaN;
    }
  }
  if (value === "") return NaN;
  if (column.kind === "date" && typeof value === "string") {
    const days = /^\d{4}-\d\d-\d\d$/.test(value) ? Date.parse(`${value}T00:00:00Z`) / 86400000 : NaN;
    if (Number.isNaN(days)) throw refusal(column, `${shown(value)} is not a date`);
    return days;
  }
  if (typeof value !== "number" && typeof value !== "boolean") {
    const text = `column ${shown(column.name)} holds ${shown(String(value))}, which is not a number`;
    throw fault(column.name, `${text}; convert it or drop it, or take naive Bayes and declare it categorical`);
  }
  const x = Number(value);
  const refuse = (words) => refusal(column, words.replace("{value}", shown(x)));
  if (!Number.isFinite(x)) throw refuse(column.kind === "bool" ? column.words : column.infinite || model.infinite);
  if (column.kind === "bool") throw refuse(column.words);
  if (column.kind === "count" && !(x >= 0 && Number.isInteger(x))) throw refuse(column.words);
  if (x > column.most) throw refuse(column.words_most);
  if (x <= column.above) throw refuse(column.words);
  return x;
}

/** Return a row as numbers. @param {Object<string, *>} row @param {string[]} [remarks] */
function read(row, remarks = []) {
  const has = (name) => Object.prototype.hasOwnProperty.call(row, name);
  const x = model.columns.map((column) => (has(column.name) ? entry(column, row[column.name], remarks) : NaN));
  for (const f of factors) if (KINDS[f.kind].check) KINDS[f.kind].check(f, x);
  return x;
}

/** Return a row as numbers that can be answered: a regression takes no gaps, unless it fills them. */
function complete(row) {
  const x = read(row);
  const gone = model.gaps ? -1 : x.findIndex(Number.isNaN);
  if (gone >= 0) throw refusal(model.columns[gone], model.missing);
  return x;
}

/** Tell what of a row is taken otherwise than it was given. @returns {string[]} sentences */
function remarks(row) {
  const found = [];
  read(row, found);
  return found;
}

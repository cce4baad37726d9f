// ---- rows -----------------------------------------------------------------------------------------------------------
// A row is an object by column name; undefined, null, NaN and "" are unknown. Dates are text, as the fit had them or
// 2024-01-31 with a time or without, and durations 1:30, 1 days 02:30:00 or P1DT2H30M. Within, a row is an array of numbers, a category as its place
// among the categories of its column, and NaN where unknown.

const K = model.classes.length;

/** @returns {Error} an error that knows its column */
function fault(column, text) {
  return Object.assign(new Error(text), { column });
}

/** @returns {Error} of a column, in words that follow its name; with what a page puts in place of them */
const refusal = ({ name }, words, said) => Object.assign(fault(name, `column ${shown(name)}: ${words}`), said);

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

/** Return what a code stands for, the same for 1, "1" and "1.0"; "01", "+1" and "1e0" stay text. */
function codeOf(label) {
  if (typeof label !== "string") return typeof label === "boolean" ? `'${label ? "True" : "False"}` : `#${label}`;
  const found = /^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/.exec(label);
  if (!found || label.endsWith("\n")) return `'${label}`;
  return `#${/[1-9]/.test(found[2] || "") ? Number(label) : BigInt(label.split(".")[0])}`;
}

for (const column of model.columns) {
  if (!column.categories) continue;
  column.place = new Map(column.categories.map((label, code) => [key(label), code]));
  column.codes = new Map(); // places by code, -1 where several categories have one
  column.categories.forEach((label, code) => column.codes.set(codeOf(label), column.codes.has(codeOf(label)) ? -1 : code));
}

const CLOCK = /^(?:([+-]?\d+) days? \+?(\d\d):(\d\d):(\d\d(?:\.\d+)?)|(-?)(\d{1,4}):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?)$/;
const NUMERAL = "([+-]?[\\d.]+(?:e[+-]?\\d+)?)";
const PERIOD = new RegExp(`^([+-]?)P(?:${NUMERAL}D)?(?:T(?:${NUMERAL}H)?(?:${NUMERAL}M)?(?:${NUMERAL}S)?)?$`);

const FORMS = Object.entries(model.forms || {}).map(([form, source]) => [form, new RegExp(`^(?:${source})`)]);
const YEAR_FIRST = "%Y-%m-%d";
const MONTHS = "january february march april may june july august september october november december".split(" ");

/** Return year, month, day and days since 1970-01-01 of a text by the pattern of a format; null where it is of another. */
function dateBy(pattern, text) {
  const { groups } = pattern.exec(text) || {};
  if (!groups) return null;
  const { Y, m = 1, d = 1, b, q, V, H = 0, M = 0, S = 0, zone = "Z" } = groups;
  const months = MONTHS.filter((name) => b && name.startsWith(b.toLowerCase()));
  if (b && months.length !== 1) return null;
  let [year, month, day] = [Number(Y), b ? MONTHS.indexOf(months[0]) + 1 : q ? 3 * q - 2 : Number(m), Number(d)];
  const moment = new Date(0);
  if (V) { // the Monday of a week: the first one holds January 4
    moment.setUTCFullYear(year, 0, 4);
    moment.setUTCDate(4 - ((moment.getUTCDay() + 6) % 7) + 7 * (V - 1) + 3);
    if (V < 1 || moment.getUTCFullYear() !== year) return null;
    moment.setUTCDate(moment.getUTCDate() - 3);
    [year, month, day] = [moment.getUTCFullYear(), moment.getUTCMonth() + 1, moment.getUTCDate()];
  }
  moment.setUTCFullYear(year, month - 1, day);
  const there = year > 0 && moment.getUTCMonth() === month - 1 && moment.getUTCDate() === day;
  const shift = zone === "Z" ? 0 : (zone[0] === "-" ? -1 : 1) * (60 * zone.slice(1, 3) + 1 * zone.slice(-2));
  const days = moment.getTime() / 86400000 + (60 * H + 1 * M - shift + S / 60) / 1440;
  return { month, day, days: there && H <= 23 && M <= 59 && S < 61 ? days : NaN };
}

/** Return days since 1970-01-01 of a date in text, by the format of the fit; NaN where it is none, or one of two. */
function daysOfDate(text, { form }) {
  const found = new Map();
  for (const [name, pattern] of FORMS) {
    const date = dateBy(pattern, text);
    if (date && (name === YEAR_FIRST || (date.month >= 1 && date.month <= 12 && date.day >= 1 && date.day <= 31))) found.set(name, date);
    if (found.has(YEAR_FIRST)) break;
  }
  if (found.has(form)) return found.get(form).days;
  const others = [...found.keys()], first = found.get(others[0]);
  const against = form && form !== YEAR_FIRST && others.some((one) => one !== YEAR_FIRST && one[2] === form[2]);
  if (!first || against) return NaN;
  return others.length === 1 || found.has("%d.%m.%Y") || first.month === first.day ? first.days : NaN;
}

/** Return the days of a duration in text; NaN where it is none. */
function daysOfSpan(text) {
  const clock = CLOCK.exec(text);
  if (clock) {
    const [days = 0, hours, minutes, seconds = 0] = clock[1] ? clock.slice(1) : [0, ...clock.slice(6)];
    const length = (1 * hours) * 60 + 1 * minutes + seconds / 60;
    return clock[5] ? -length / 1440 : 1 * days + length / 1440;
  }
  const [, sign, ...parts] = PERIOD.exec(text) || [];
  if (!parts.some((part) => part !== undefined)) return NaN;
  const [days, hours, minutes, seconds] = parts.map((part) => Number(part || 0));
  return (sign === "-" ? -1 : 1) * (days + (hours * 60 + minutes + seconds / 60) / 1440);
}

const TEXTS = { date: [daysOfDate, "dates", "date"], duration: [daysOfSpan, "durations", "duration"] };

/** Return the number that stands for a value of a column, or throw. */
function entry(column, value, remarks) {
  if (isUnknown(value)) return NaN;
  const told = (words) => remarks.push(`column ${shown(column.name)}: ${words}`);
  if (typeof value === "object") throw fault(column.name, `column ${shown(column.name)} holds an object, which is no value`);
  if (column.place) {
    let code = column.place.get(key(value));
    if (code === undefined && column.kind === "category") code = column.codes.get(codeOf(value));
    if (typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER && Number.isInteger(value)) {
      throw refusal(column, `${shown(value)} is no whole number that JavaScript tells from its neighbours; give it as text`);
    }
    if (code >= 0) return code;
  }
  if (value === "") {
    told("'' is taken as unknown");
    return NaN;
  }
  if (column.kind === "category") {
    if (model.unseen === "error") throw refusal(column, `${shown(value)} in row 0 is not one of the categories ${column.words}`);
    remarks.push(
      "1 value taken as missing, of categories that were not there at fit: " +
        `column ${shown(column.name)}: [${shown(value)}] in 1 row. unseen='error' refuses them`,
    );
    return NaN;
  }
  const [daysOf, things, one] = TEXTS[column.kind] || [];
  if (daysOf && typeof value === "string") {
    const days = daysOf(value.trim(), column);
    if (Number.isNaN(days)) throw refusal(column, `${shown(value)} is not a ${one}`);
    return days;
  }
  if (daysOf && !(column.days && typeof value === "number")) throw refusal(column, `${shown(value)} is a number, where the fit had ${things}`);
  if (typeof value !== "number" && typeof value !== "boolean") {
    const text = `column ${shown(column.name)} holds ${shown(String(value))}, which is not a number`;
    throw fault(column.name, `${text}; convert it or drop it, or take naive Bayes and declare it categorical`);
  }
  const x = Number(value);
  const refuse = (words, said) => refusal(column, words.replace("{value}", shown(x)), said);
  if (!Number.isFinite(x)) throw refuse(column.kind === "bool" ? column.words : column.infinite || model.infinite, { far: x });
  if (column.kind === "bool") throw refuse(column.words);
  if (column.kind === "count" && !(x >= 0 && Number.isInteger(x))) throw refuse(column.words);
  if (x > column.most) throw refuse(column.words_most);
  if (x <= column.above) throw refuse(column.words, { least: column.above });
  return x;
}

const NAMES = new Set([...model.columns.map(({ name }) => name), ...model.unused]);

/** Return a row as numbers. @param {Object<string, *>} row @param {string[]} [remarks] */
function read(row, remarks = []) {
  if (typeof row !== "object" || row === null || Array.isArray(row) || row instanceof Map) {
    throw new Error("a row is an object of values by the names of columns, such as {age: 40, sex: null}");
  }
  const others = Object.keys(row).filter((name) => !NAMES.has(name));
  if (others.length) remarks.push(`${others.map(shown).join(", ")}: no column of the model, which has ${model.columns.map(({ name }) => shown(name)).join(", ")}`);
  const x = model.columns.map((column) => (Object.hasOwn(row, column.name) ? entry(column, row[column.name], remarks) : NaN));
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
  const x = read(row, found);
  const lost = !model.score && !model.average && jointOf(given(x)).every((v) => v === -Infinity);
  if (lost) found.push("1 row has probability 0 under every class; it gets the class prior");
  return found;
}

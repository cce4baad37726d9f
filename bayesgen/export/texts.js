// ---- texts ----------------------------------------------------------------------------------------------------------
// What people write in a cell or a field, read as Python reads a later file (`Reading.number`, `Numerals`), by the signs of
// the file of the fit or else of a language; two readings are refused. What is shown is written so that it is read again.

const BLANK = "[ \t\u00a0\u2007\u2009\u202f]";
const MINUS = "[-\u2212\u2013]", DASHES = new RegExp(MINUS, "g");
const AROUND = /^[ \t\u00a0\u2007\u2009\u202f\r\n]+|[ \t\u00a0\u2007\u2009\u202f\r\n]+$/g;
const APART = { ".": "\\.", ",": ",", "'": "['\u2019]", " ": BLANK };
const WAYS = [",.", ".,", "'.", " .", "',", " ,", ".", ","].map((signs) => ({ thousands: signs.slice(0, -1), decimal: signs.at(-1) }));
const GAPS = new Set(["na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none"]);
const BOOLS = { True: true, TRUE: true, true: true, False: false, FALSE: false, false: false };
const PLAIN = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/;
const NEGATIVE = new RegExp(`^${BLANK}*(?:[(]([^)]*)[)]|(.*[0-9%])${BLANK}?${MINUS})${BLANK}*$`);

/** Return the error on a text, in the words of a sentence. */
function unread(key, values) {
  return new Error(sentences[key].replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole));
}

/** Return the signs of numbers: of the file of the fit, else of a language. */
function signsOf(language = "en") {
  if (model.reading.file) return { ...model.reading, language: "en" };
  const parts = new Intl.NumberFormat(language, { numberingSystem: "latn" }).formatToParts(1234567.5);
  const sign = (type) => parts.find((part) => part.type === type)?.value;
  const decimal = sign("decimal") === "," ? "," : ".";
  const thousands = Object.keys(APART).find((one) => one !== decimal && new RegExp(`^${APART[one]}$`).test(sign("group"))) ?? "";
  return { ...model.reading, decimal, thousands, language };
}

/** Return the regular expression of a number, as `Numerals.pattern` has it. */
function numeralPattern({ decimal, thousands, limits }) {
  const point = decimal === "." ? "\\." : ",";
  let whole = "[0-9]+";
  if (thousands) {
    const groups = `[1-9][0-9]{0,2}(?:${APART[thousands]}[0-9]{3})+`;
    const lakhs = thousands === "," ? "|[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}" : "";
    whole = `(?:${groups}${lakhs}|${whole})`;
  }
  const limit = limits ? `(?:[<>\u2264\u2265]=?${BLANK}*)?` : "";
  const size = `(?:${whole}(?:${point}[0-9]*)?|${point}[0-9]+)(?:[eE](?:[+]|${MINUS})?[0-9]+)?${BLANK}*%?`;
  const ended = `${whole}(?:${point}[0-9]+)?${BLANK}*%?${BLANK}?[-\u2212]`;
  return `^${BLANK}*${limit}(?:(?:[+]|${MINUS}${BLANK}?)?${size}|${ended}|[(]${size}[)])${BLANK}*$`;
}

const isApart = (text, sign) => new RegExp(`^[^0-9.,]*[1-9][0-9]{0,2}(${APART[sign]}[0-9]{3})+[^0-9.,]*$`).test(text);

/** Return a text that matches the pattern of numbers as programs write it (`Numerals.plain`). */
function asPrograms(text, { decimal }) {
  const signed = text.replace(NEGATIVE, (_, inside = "", before = "") => `-${inside}${before}`).replace(DASHES, "-");
  return signed.replace(decimal === "." ? /[^-+0-9eE.]/g : /[^-+0-9eE,]/g, "").replace(",", ".");
}

/** Return the number of one text without its unit; null where it is none, or one of two (`Numerals.value`). */
function numberOfText(text, how, fraction) {
  if (text.length > 100) return null;
  const plain = how.decimal === "," && how.thousands !== "." && PLAIN.test(text);
  const apart = [".", ","].some((sign) => sign !== how.thousands && isApart(text, sign));
  if ((apart && (plain || fraction === false)) || !(plain || new RegExp(numeralPattern(how)).test(text))) return null;
  if (plain) return Number(text);
  const value = Number(asPrograms(text, how));
  return how.limits && value > 0 && /[<\u2264]/.test(text) ? value / 2 : value;
}

/** Return a text without a unit before or behind its number. */
function undressed(text, unit) {
  const word = unit.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  const bare = text.replace(new RegExp(`^(${BLANK}*(?:[+(]|${MINUS})?)${BLANK}*${word}${BLANK}*`), "$1");
  return !/[0-9]/.test(text) ? text : bare.replace(new RegExp(`${BLANK}*${word}(${BLANK}?(?:[)]|${MINUS})?${BLANK}*)$`), "$1");
}

const howOf = (column, how) => ({ ...how, ...(column.programs ? { decimal: ".", thousands: "" } : {}), limits: column.limits });

/** Return the number that a text of a column means, or throw; units that stand beside it need not be in it. */
function numberOf(column, text, signs, beside = []) {
  const how = howOf(column, signs), { unit = "" } = column, percent = unit === "%";
  const number = [...beside, percent ? "" : unit].filter(Boolean).reduce(undressed, text);
  const value = numberOfText(number, how, column.fraction), bare = percent ? !text.includes("%") : unit && !column.bare && number === text;
  if (bare && !beside.length && /[1-9]/.test(text)) throw unread("no_unit", { text, unit });
  if (number.includes("%") && !percent) throw unread("a_percent", { text });
  if (value !== null && Number.isFinite(value)) return value;
  const ways = new Set(WAYS.map((way) => numberOfText(number, way)));
  const found = [...ways].filter((one) => one !== null && Number.isFinite(one)).map((one) => String(one).replace(".", how.decimal));
  if (found.length > 1) throw unread("two_numbers", { text, first: found[0], second: found[1] });
  throw unread("no_number", { text, example: found[0] ?? `1234${how.decimal}5` });
}

/** Return a number as a column shows it, with so many digits: `numberOf` reads it again. */
function written(column, value, signs, digits = 4) {
  const how = howOf(column, signs), near = Number(value.toPrecision(digits)), size = Math.abs(near);
  if (size && (size >= 1e15 || size < 1e-6)) return near.toExponential().replace(".", how.decimal);
  const text = grouped(near, how, { maximumSignificantDigits: 21 });
  return column.fraction === false && isApart(text, how.decimal) ? `${text}0` : text; // no longer one of two
}

/** Return a number by the signs of a way of writing, and other options of Intl. */
function grouped(value, how, options) {
  const shape = new Intl.NumberFormat(how.language, { numberingSystem: "latn", useGrouping: how.thousands ? "min2" : false, ...options });
  const signs = { group: { " ": "\u202f", "'": "\u2019" }[how.thousands] ?? how.thousands, decimal: how.decimal, minusSign: "-", literal: "" };
  return shape.formatToParts(value).map((part) => signs[part.type] ?? part.value).join("");
}

/** Return the text that another means in a column, as the fit was told, without blanks around it. */
function meaningOf({ meant = {} }, text) {
  const bare = text.replace(AROUND, "");
  return Object.hasOwn(meant, bare) ? meant[bare] : bare;
}

/** Return the value that a text means in a column, null for a gap, or throw. */
function valueOf(column, given, signs, beside) {
  const text = meaningOf(column, given);
  if (text === "" || signs.missing.includes(text) || (column.kind !== "category" && GAPS.has(text.toLowerCase()))) return null;
  if (column.kind === "bool" && Object.hasOwn(BOOLS, text)) return BOOLS[text];
  if (["number", "count", "bool"].includes(column.kind)) return numberOf(column, text, signs, beside);
  if (column.kind === "category") return signs.decimal === "," && /^-?[0-9]+(,0+)?$/.test(text) ? text.replace(/,0+$/, "") : text;
  return text; // of dates and durations, which rows have as text
}

/**
 * Return a row of texts as values: numbers, dates, categories as a file of the fit has them, null where empty.
 * @param {Object<string, string>} row @param {{language?: string}} [options] the language of numbers, where no file was
 */
function parse(row, { language = "en" } = {}) {
  const signs = signsOf(language), values = Object.assign(Object.create(null), row);
  for (const column of model.columns) {
    const text = values[column.name];
    if (typeof text !== "string") continue;
    try {
      values[column.name] = valueOf(column, text, signs);
    } catch (error) {
      throw refusal(column, error.message);
    }
    limitOf(column, text, values);
  }
  return values;
}

/** Add the value of the column that tells whether a text was a limit, where the model has one that is not given. */
function limitOf(column, text, values, told = `${column.name}_limit`) {
  if (column.limits && !(told in values) && NAMES.has(told)) values[told] = /^[<>\u2264\u2265]/.test(text.trim());
}

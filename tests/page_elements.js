// Elements of a page as far as its program needs them, for an engine without a browser (`test_export_rows.py`).
class Element {
  constructor(tag) {
    Object.assign(this, { tag, inside: [], style: {}, dataset: {}, value: "", hidden: false, textContent: "", classList: { toggle() {} } });
  }
  append(...more) { this.inside.push(...more); }
  replaceChildren(...more) { this.inside = more; }
  setAttribute(name, value) { this[name] = value; }
  addEventListener(kind, work) { this[kind] = work; }
  focus() {}
  click() {}
}
const elements = new Map(), made = [];
const document = {
  createElement: (tag) => made[made.push(new Element(tag)) - 1],
  querySelectorAll: () => [],
  getElementById: (id) => elements.get(id) || elements.set(id, new Element(id)).get(id),
};
const window = { requestIdleCallback: (work) => work({ timeRemaining: () => 1e9 }), print() {} };
globalThis.URL = { createObjectURL: (blob) => blob, revokeObjectURL() {} };
globalThis.setTimeout = () => 0;
let downloaded = "", asked = null;
class Blob { constructor(parts) { downloaded = parts.join(""); } }

/** Paste a table of several cases, and return the status and the cells of the file of answers. */
function pasteCases(text) {
  document.getElementById("pasted").value = text;
  document.getElementById("answer-all").onclick();
  const answers = document.getElementById("table");
  downloaded = "";
  if (!answers.hidden) document.getElementById("download").onclick();
  const [first, ...others] = downloaded.replace("\ufeff", "").trim().split("\r\n"), sep = ["\t", ";", ","].find((sign) => first.includes(sign));
  const lines = [first, ...others].map((line) => line.split(new RegExp(`${sep}(?=(?:[^"]*"[^"]*")*[^"]*$)`)));
  return [document.getElementById("cases-status").textContent, lines.map((line) => line.map((cell) => cell.replace(/^"|"$/g, "").replaceAll('""', '"')))];
}

/** Type a text into the field of a place, and return what the page says: beside it, as the answer, of its interval. */
function typeInto(place, text) {
  const field = made.find(({ id }) => id === `value-${place}`);
  field.value = text;
  field.input();
  const said = (element) => element.textContent + element.inside.map((one) => (one instanceof Element ? said(one) : one)).join(" ");
  return [made.find(({ id }) => id === `note-${place}`), ...["now", "interval-note", "questions"].map(document.getElementById)].map(said);
}

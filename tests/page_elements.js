// Elements of a page as far as its program needs them, for an engine without a browser (`test_export_rows.py`).
class Element {
  constructor(tag) {
    Object.assign(this, { tag, inside: [], style: {}, dataset: {}, value: "", hidden: false, textContent: "", classList: { toggle() {} } });
  }
  append(...more) { this.inside.push(...more); }
  replaceChildren(...more) { this.inside = more; }
  setAttribute() {}
  addEventListener() {}
  focus() {}
  click() {}
}
const elements = new Map();
const document = {
  createElement: (tag) => new Element(tag),
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
  const lines = downloaded.replace("\ufeff", "").trim().split("\r\n").map((line) => line.split(/[,;](?=(?:[^"]*"[^"]*")*[^"]*$)/));
  return [document.getElementById("cases-status").textContent, lines.map((line) => line.map((cell) => cell.replace(/^"|"$/g, "").replaceAll('""', '"')))];
}

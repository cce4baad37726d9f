// ---- elements of a page ---------------------------------------------------------------------------------------------
// All that is shown is put in as text, never as markup.

const $ = (id) => document.getElementById(id);

/** An element with attributes and properties, around text and other elements. */
function element(tag, given = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) name in made ? (made[name] = value) : made.setAttribute(name, value);
  made.append(...inside.filter((one) => one != null));
  return made;
}

/** Return the cells of a table as a spreadsheet copies it or a file holds it, by rows; `bare` is made of those without quotes. */
function cellsOf(text, sep, bare = (cell) => cell) {
  const rows = [[]], pattern = new RegExp(`("[^"]*(?:""[^"]*)*"(?!")|)([^${sep}\r\n]*)([${sep}]|\r\n?|\n|$)`, "y");
  for (let found, end = false; !end; end = found[3] === "") {
    found = pattern.exec(text);
    rows.at(-1).push(found[1] ? found[1].slice(1, -1).replaceAll('""', '"') + found[2] : bare(found[2]));
    if (/[\r\n]/.test(found[3])) rows.push([]);
  }
  return rows;
}

/** The text of a file of cells, apart by a sign; a spreadsheet would run what looks like a formula. */
function fileOf(table, sep) {
  const harmless = (cell) => (/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell);
  const quoted = (cell) => (/[",;|\t\n\r]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell);
  return table.map((line) => line.map((cell) => quoted(harmless(cell))).join(sep)).join("\r\n") + "\r\n";
}

/** Give a file to the reader. */
function download(name, type, ...parts) {
  const link = element("a", { href: URL.createObjectURL(new Blob(parts, { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// What the page that learns makes of tables, without its elements: `node tests/learn_page.mjs FOLDER` reads learn.html and
// cases.json there, and writes for every model of a table the files that the page would save, and what it computed.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

const folder = process.argv[2], read = (name) => readFile(join(folder, name), "utf8");
const [script] = /<script>([^]*)<\/script>/.exec(await read("learn.html"))[1].split("// The page that learns:");
const names = "readTable, columnsFor, structuresOf, learn, savedFile, pythonOf, calculatorOf, page";
const { page, ...of } = new Function(`${script}; return { ${names} };`)();

const SIGNS = { "1.234,5": { decimal: ",", thousands: ".", doubtful: [] } }; // as the page takes them
for (const { name, file, target, said = {}, signs } of JSON.parse(await read("cases.json"))) {
  const table = of.readTable(await read(file), page), wanted = new Map(Object.entries(said));
  const read_ = of.columnsFor(table, target, wanted, SIGNS[signs]), used = read_.columns.filter(({ kind }) => kind !== "unused");
  const models = [];
  for (const structure of Object.keys(of.structuresOf(used, read_.target))) {
    const learned = of.learn(structure, used, read_.target), path = join(folder, `${name}-${models.length}`);
    const found = { learned, signs: { sep: table.sep, ...read_.signs }, file, columns: read_.columns };
    await writeFile(`${path}.safetensors`, await of.savedFile(found));
    await writeFile(`${path}.py`, of.pythonOf(found));
    await writeFile(`${path}.html`, await of.calculatorOf(found));
    models.push({ structure, base: learned.base, loss: learned.leftOut.loss, without: used.map((_, j) => learned.without(j)) });
  }
  const told = Object.fromEntries(read_.columns.map((one) => [`column ${one.name}`, one.kind]));
  await writeFile(join(folder, `${name}.json`), JSON.stringify({ models, told, base: models[0].base }));
}

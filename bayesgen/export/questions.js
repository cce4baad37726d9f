// ---- questions ------------------------------------------------------------------------------------------------------

const LEVELS = [1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.12, 0.22, 0.35]; // at whose quantiles a line is cut, and their mirrors
const quantiles = new Map(); // of Student's t at these, by degrees of freedom
const CUTS = 17; // of a line by the quantiles of a group
const PIECES = 32; // of a line that several members cut

const tooFar = (x, j, question) => refusal(model.columns[j],
  `value ${shown(x[j])} in row 0 is too far from the rows of the fit for ${question}: give NaN in its place, or leave the row out`, { far: x[j] });

/** Round to the nearest whole number, halves to the even one. */
function round(value) {
  const low = Math.floor(value);
  return value - low === 0.5 ? low + (low % 2) : Math.round(value);
}

/** Return the quantile of Student's t at a level below 1/2, by Newton's steps in log t. */
function studentQuantile(level, dof) {
  const top = dof === Infinity ? -LOG_2PI / 2 : logGammaRatio(dof / 2, 0.5) - 0.5 * Math.log(Math.PI * dof);
  const density = (t) => Math.exp(top - (dof === Infinity ? 0.5 * t * t : 0.5 * (dof + 1) * Math.log1p((t * t) / dof)));
  let [t, step] = [1, 1];
  for (let turn = 0; turn < 500 && Math.abs(step) > 1e-14; turn++) {
    let tail = 0; // over u = t exp(s), s = exp(w - exp(-w)): the trapezoid rule is exact to rounding
    for (let w = -4; w < 5; w += 1 / 32) {
      const s = Math.exp(w - Math.exp(-w)), u = t * Math.exp(s);
      if (u < 1e150) tail += (density(u) * u * s * (1 + Math.exp(-w))) / 32;
    }
    step = Math.min(((Math.log(tail) - Math.log(level)) * tail) / (density(t) * t), 1);
    t *= Math.exp(step);
  }
  return -t;
}

/** Return the quantiles of Student's t at which a line is cut, kept for the next line. */
function quantilesOf(dof) {
  if (!quantiles.has(dof)) quantiles.set(dof, LEVELS.map((level) => studentQuantile(level, dof)));
  return quantiles.get(dof);
}

/**
 * Return the groups {f, g, i} at whose quantiles the line of a column is cut, i its place in the factor: those of five
 * alternatives at most, the heaviest and others at even steps down the order of weight.
 */
function cutting(column, { takes, count, log }) {
  const heavy = new Map(); // weight by factor and alternative
  for (let m = 0; m < count; m++) {
    for (const [f, a] of log[m] > -Infinity ? takes[m] : []) {
      if (placeIn(factors[f], column) < 0) continue;
      const name = f * 1e6 + a;
      heavy.set(name, (heavy.get(name) || 0) + Math.exp(log[m]));
    }
  }
  const order = [...heavy.keys()].sort((a, b) => a - b).sort((a, b) => heavy.get(b) - heavy.get(a));
  const step = Math.max(1, Math.floor(order.length / 3));
  return order.filter((_, place) => place % step === 0).flatMap((name) => {
    const [f, a] = [factors[Math.floor(name / 1e6)], name % 1e6];
    return f.cell.flatMap((cell, g) => (Math.floor(cell / K) === a ? [{ f, g, i: placeIn(f, column) }] : []));
  });
}

/** Return nodes of a number under the groups that cut its line: values and log widths of the pieces that they stand for. */
function nodesOfLine(lines) {
  const points = [];
  for (const { location, spread, dof } of lines) {
    for (const q of quantilesOf(dof)) points.push(location + spread * q, location - spread * q);
    points.push(location);
  }
  points.sort((a, b) => a - b);
  const pieces = lines.length <= K ? CUTS * lines.length - 1 : PIECES;
  let ends = points;
  if (points.length > pieces + 1) {
    ends = Array.from({ length: pieces + 1 }, (_, i) => points[round((i * (points.length - 1)) / pieces)]);
  }
  const nodes = [];
  for (let i = 0; i + 1 < ends.length; i++) {
    const [half, middle] = [(ends[i + 1] - ends[i]) / 2, (ends[i + 1] + ends[i]) / 2];
    for (const sign of [-1, 1]) nodes.push({ z: middle + (sign * half) / Math.sqrt(3), width: Math.log(half) });
  }
  return nodes;
}

/** Return {weight, then} at the values that an unknown column may have: their chances, and log class probabilities there. */
function valuesOf(about, column, shares) {
  const groups = cutting(column, about.mixture.members);
  if (!groups.length) return []; // a constant says nothing
  const [{ f, i }] = groups;
  const each = (name, ...more) => groups.map((one) => KINDS[one.f.kind][name](one.f, ...more.map((key) => one[key]), one.i, about.z));
  let nodes;
  if (KINDS[f.kind].line) nodes = nodesOfLine(each("line", "g"));
  else nodes = Array.from({ length: Math.max(...each("values")) }, (_, z) => ({ z, width: 0 }));
  const terms = nodes.map(({ z, width }) => {
    const there = moved(about, column, f.columns[i], z);
    return { weight: logSum(jointOf(there, shares)) + width, then: answered(there, shares) };
  });
  const total = logSum(terms.map(({ weight }) => weight));
  return terms.map(({ weight, then }) => ({ weight: Math.exp(weight - total), then }));
}

/**
 * Yield what it is worth to know each unknown entry, one at a step: expected nats of information about the class or,
 * with losses, the expected loss that is saved, less the cost.
 * @returns {Generator<{column: string, value: number}>}
 */
function* nextMeasurements(row, { loss, costs, priors } = {}) {
  const [x, shares] = [read(row), checked(priors)];
  if (!model.generative) return;
  const known = costs instanceof Map ? costs : new Map(Object.entries(costs ?? {}));
  let about = given(x);
  if (model.average) { // its members that have nearly all of the weight stand for it
    const [log, weights] = ["log", "weights"].map((name) => flat(model.average[name], members.count));
    about = given(x, { factors, members: { ...members, log, weights } });
    refuseFar(about, "next_measurement()");
  }
  const now = answered(about, shares);
  const sizes = x.map((v, j) => (model.columns[j].place || Number.isNaN(v) ? -1 : Math.abs(v)));
  const farthest = sizes.indexOf(Math.max(...sizes));
  const lost = jointOf(about).every((v) => v === -Infinity); // ruled out under every class: the shares alone are known
  const blocked = lost && factors.some((f) => (f.kind === "vector" || f.joint) && entriesOf(f, about.z).length);
  if (lost) about = given(x.map(() => NaN), about.mixture);
  const action = loss ? decide(now.map(Math.exp), loss).action : 0;
  for (const [j, column] of model.columns.entries()) {
    if (!Number.isNaN(x[j]) || column.given || column.word) continue; // no answer for counts given their total
    if (blocked) throw tooFar(x, farthest, "next_measurement()");
    let value = 0;
    for (const { weight, then } of valuesOf(about, j, shares)) {
      if (loss) {
        const { losses } = decide(then.map(Math.exp), loss);
        value += weight * (losses[action] - Math.min(...losses));
      } else {
        then.forEach((v, k) => (value += v === -Infinity ? 0 : weight * Math.exp(v) * (v - now[k])));
      }
    }
    if (Number.isNaN(value)) throw tooFar(x, farthest, "next_measurement()");
    yield { column: column.name, value: (loss ? value : Math.max(value, 0)) - (known.get(column.name) ?? 0) };
  }
}

/** Return the values of all unknown entries, the best first; null of a regression. */
function nextMeasurement(row, options) {
  return model.generative ? [...nextMeasurements(row, options)].sort((a, b) => b.value - a.value) : null;
}

/** Return the rows that the model drew, as numbers. */
function drawnRows() {
  const columns = model.columns.map(({ drawn: [middle, spread, codes], above, kind }) => Array.from(flat(codes), (code) => {
    const value = middle + spread * Math.sinh((code - 32768) / 1000);
    return above !== undefined ? above + Math.exp(value) : kind === "number" || kind === "duration" ? value : Math.round(value);
  }));
  return Array.from(columns[0], (_, r) => columns.map((values) => values[r]));
}

const logDensity = (x) => logSum(jointOf(given(x))) + logSlope(x);
let ranked = null; // log densities of the drawn rows under the last pattern of gaps

/** Return the rank of a row among rows that the model drew, small if it is like none of them; null of a regression. */
function typicality(row) {
  const x = read(row);
  if (!model.columns[0].drawn) return null;
  const seen = x.map((v) => !Number.isNaN(v));
  if (!seen.some(Boolean)) return 1;
  const moved = ({ constant }, j) => constant !== undefined && Math.abs(x[j] - constant) > 1e-12 * Math.abs(constant);
  if (model.columns.some(moved)) return 0; // another value in a column that was constant over all rows of the fit
  const pattern = seen.join();
  if (!ranked || ranked.pattern !== pattern) {
    const rows = drawnRows().map((values) => values.map((v, j) => (seen[j] ? v : NaN)));
    ranked = { pattern, density: rows.map(logDensity) };
  }
  const mine = logDensity(x);
  const width = 1e-9 * (1 + (Number.isFinite(mine) ? Math.abs(mine) : 0)); // of what is equal but for rounding
  const below = ranked.density.filter((v) => v < mine - width).length;
  const equal = ranked.density.filter((v) => v <= mine + width).length - below;
  return (below + 0.5 * (equal + 1)) / (ranked.density.length + 1);
}

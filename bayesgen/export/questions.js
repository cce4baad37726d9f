// ---- questions ------------------------------------------------------------------------------------------------------

const quantilesOf = new Map(model.quantiles); // by degrees of freedom, below the median; their mirrors are above
const CUTS = 17; // of a line by the quantiles of a group
const PIECES = 32; // of a line that several members cut

/** Round to the nearest whole number, halves to the even one. */
function round(value) {
  const low = Math.floor(value);
  return value - low === 0.5 ? low + (low % 2) : Math.round(value);
}

/** Return the groups at whose quantiles a line is cut: those of five alternatives at most, the heaviest first. */
function cutting(using) {
  const heavy = [];
  const start = using.map((place) => {
    const begin = heavy.length;
    for (let a = 0; a < factors[place].alternatives; a++) heavy.push(0);
    for (let m = 0; m < members.count; m++) {
      const choice = members.choice(m, place);
      if (choice >= 0) heavy[begin + choice] += Math.exp(members.log[m]);
    }
    return begin;
  });
  const order = heavy.map((_, a) => a).sort((a, b) => heavy[b] - heavy[a] || a - b);
  const step = Math.max(1, Math.floor(heavy.length / 3));
  const chosen = new Set(order.filter((_, place) => place % step === 0));
  return using.flatMap((place, u) => factors[place].cell.map((cell) => chosen.has(start[u] + Math.floor(cell / K))));
}

/** Return nodes of a number under groups: values and log widths of the pieces for which they stand. */
function nodesOfLine(lines, cuts) {
  const points = [];
  lines.forEach(({ location, spread, dof }, g) => {
    if (!cuts[g]) return;
    for (const q of quantilesOf.get(dof)) points.push(location + spread * q, location - spread * q);
    points.push(location);
  });
  points.sort((a, b) => a - b);
  const count = cuts.filter(Boolean).length;
  const pieces = count <= K ? CUTS * count - 1 : PIECES;
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

/** Yield {now, then, weight} of an unknown column: log class probabilities now, and at each of its values. */
function valuesOf(x, j, about, shares) {
  const using = factors.flatMap((f, place) => (f.columns.includes(j) ? [place] : []));
  const groups = using.flatMap((place) => {
    const f = factors[place];
    const over = new Map(); // log p(x, alternative, class) over the members that take the alternative
    for (let m = 0; m < members.count; m++) {
      const choice = members.choice(m, place);
      for (let k = 0; choice >= 0 && k < K; k++) {
        const cell = choice * K + k;
        if (!over.has(cell)) over.set(cell, []);
        over.get(cell).push(about.joint[m * K + k]);
      }
    }
    return f.cell.map((cell, g) => {
      let weight = over.has(cell) ? logSum(over.get(cell)) : -Infinity;
      if (f.groups !== f.alternatives * K) weight += about.density[place][g] + f.share[g] - about.classes[place][cell];
      return { f, g, i: f.columns.indexOf(j), k: cell % K, weight };
    });
  });
  if (!using.length) return []; // a constant says nothing
  const kind = KINDS[factors[using[0]].kind];
  let nodes;
  let density;
  if (kind.line) {
    const lines = groups.map(({ f, g, i }) => kind.line(f, g, i, x));
    nodes = nodesOfLine(lines, cutting(using));
    density = (group, place, z) => lineDensity(lines[place], z);
  } else {
    const most = Math.max(...using.map((place) => kind.values(factors[place], factors[place].columns.indexOf(j))));
    nodes = Array.from({ length: most }, (_, z) => ({ z, width: 0 }));
    density = ({ f, g, i }, place, z) => kind.density(f, g, i, z);
  }
  const terms = nodes.map(({ z }) => {
    const scores = Array.from({ length: K }, () => []);
    groups.forEach((group, place) => scores[group.k].push(group.weight + density(group, place, z)));
    return scores.map(logSum);
  });
  const weights = terms.map((scores, q) => logSum(scores) + nodes[q].width);
  const total = logSum(weights);
  const prior = shares ? shares.map(Math.log) : logPrior;
  return terms.map((scores, q) => ({ weight: Math.exp(weights[q] - total), then: reported(scores, prior) }));
}

/** Return the log density of a Student's t, or of a Gaussian. */
function lineDensity({ location, spread, dof }, z) {
  const square = Math.min(((z - location) / spread) ** 2, 1e300);
  if (dof === Infinity) return -0.5 * (square + LOG_2PI) - Math.log(spread);
  const level = logGammaRatio(dof / 2, 0.5) - 0.5 * Math.log(Math.PI * dof) - Math.log(spread);
  return level - 0.5 * (dof + 1) * Math.log1p(square / dof);
}

/**
 * Yield what it is worth to know each unknown entry, one at a step: expected nats of information about the class or,
 * with losses, the expected loss that is saved, less the cost.
 * @returns {Generator<{column: string, value: number}>}
 */
function* nextMeasurements(row, { loss, costs, priors } = {}) {
  const [x, shares] = [read(row), checked(priors)];
  if (!model.generative) return;
  const cost = (name) => {
    if (!costs) return 0;
    if (costs instanceof Map) return costs.get(name) || 0;
    return Object.prototype.hasOwnProperty.call(costs, name) ? costs[name] : 0;
  };
  const about = given(x, shares);
  const now = reported(overMembers(about.joint), shares ? shares.map(Math.log) : logPrior);
  const action = loss ? decide(now.map(Math.exp), loss).action : 0;
  for (const [j, column] of model.columns.entries()) {
    if (!Number.isNaN(x[j]) || column.given || column.word) continue; // no answer for counts given their total
    let value = 0;
    for (const { weight, then } of valuesOf(x, j, about, shares)) {
      if (loss) {
        const { losses } = decide(then.map(Math.exp), loss);
        value += weight * (losses[action] - Math.min(...losses));
      } else {
        then.forEach((v, k) => (value += v === -Infinity ? 0 : weight * Math.exp(v) * (v - now[k])));
      }
    }
    yield { column: column.name, value: (loss ? value : Math.max(value, 0)) - cost(column.name) };
  }
}

/** Return the values of all unknown entries, the best first; null of a regression. */
function nextMeasurement(row, options) {
  return model.generative ? [...nextMeasurements(row, options)].sort((a, b) => b.value - a.value) : null;
}

/** Return the rows that the model drew, as numbers. */
function drawnRows() {
  const [width, bytes] = [model.columns.length, bytesOf(model.drawn).buffer];
  return Array.from({ length: model.drawn_rows }, (_, r) => [...new Float32Array(bytes, 4 * r * width, width)]);
}

let ranked = null; // log densities of the drawn rows under the last pattern of gaps

/** Return the rank of a row among rows that the model drew, small if it is like none of them; null of a regression. */
function typicality(row) {
  const x = read(row);
  if (!model.drawn) return null;
  const seen = x.map((v) => !Number.isNaN(v));
  if (!seen.some(Boolean)) return 1;
  const moved = ({ constant }, j) => constant !== undefined && Math.abs(x[j] - constant) > 1e-12 * Math.abs(constant);
  if (model.columns.some(moved)) return 0; // another value in a column that was constant over all rows of the fit
  const pattern = seen.join();
  if (!ranked || ranked.pattern !== pattern) {
    const rows = drawnRows().map((values) => values.map((v, j) => (seen[j] ? v : NaN)));
    ranked = { pattern, density: rows.map((one) => logSum(overMembers(given(one).joint))) };
  }
  const mine = logSum(overMembers(given(x).joint));
  const width = 1e-9 * (1 + (Number.isFinite(mine) ? Math.abs(mine) : 0)); // of what is equal but for rounding
  const below = ranked.density.filter((v) => v < mine - width).length;
  const equal = ranked.density.filter((v) => v <= mine + width).length - below;
  return (below + 0.5 * (equal + 1)) / (ranked.density.length + 1);
}

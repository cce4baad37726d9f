// ---- the model of a table -------------------------------------------------------------------------------------------
// What NaiveBayesClassifier and GaussianDiscriminantClassifier learn of a table under their weak priors, exactly, and
// each row predicted from all others. A leaf is the density, by class, of a column or of complete vectors:
//   leftOut  adds log p(x_i | class, all other rows) of each row, times a sign, to n K numbers
//   arrays   of each class the predictive density as kinds.js reads it;  draw  draws a row of a class from it

const KAPPA = 0.01; // rows that the prior mean of a Gaussian is worth
const DRAWN = 10000; // rows that are drawn for the usual range of a column, of which 500 go with the record
const PIECE = 8192; // rows that are summed at once, as Python sums them
const FIGURE = "value {value} in row 0 is ";
const OF_KIND = { // its leaf, its density of the calculator, and the words that refuse an entry
  number: ["gaussian", "gaussian", `${FIGURE}infinite; replace it, or give NaN where the value is missing`],
  bool: ["bernoulli", "list", `${FIGURE}not 0 or 1; a Bernoulli feature is binary`],
  count: ["poisson", "count", `${FIGURE}not a count: a Poisson feature is a whole number >= 0`],
  category: ["categorical", "list"],
};

const sumOf = (values) => values.reduce((sum, v) => sum + v, 0);

/**
 * Return number, mean and scatter of some rows but one; their places are in order, from low on. A piece of them is
 * centred on the mean before it, as in Python: where an offset leaves a mean few digits, both round it alike.
 */
function momentsOf({ x, D }, rows, low, skip) {
  const [mean, scatter, z] = [new Float64Array(D), new Float64Array(D * D), new Float64Array(D)];
  for (let n = 0, place = 0, end = low + PIECE; ; end += PIECE) {
    const total = new Float64Array(D);
    for (; rows[place] < end; place++) {
      const first = rows[place] * D;
      if (rows[place] === skip) continue;
      if (!n++) for (let r = 0; r < D; r++) mean[r] = x[first + r];
      for (let r = 0; r < D; r++) {
        total[r] += z[r] = x[first + r] - mean[r];
        for (let c = 0; c <= r; c++) scatter[r * D + c] += z[r] * z[c];
      }
    }
    for (let r = 0; n && r < D; r++) {
      for (let c = 0; c <= r; c++) scatter[c * D + r] = scatter[r * D + c] -= total[r] * (total[c] / n);
      mean[r] += total[r] / n;
    }
    if (place >= rows.length) return { n, mean, scatter };
  }
}

/** Return a matrix with weight z z' added. */
const withSquare = (matrix, z, weight) => matrix.map((v, at) => v + z[(at / z.length) | 0] * z[at % z.length] * weight);

/** Return the moments of the rows of both (Chan, Golub and LeVeque 1983). */
function together(one, two) {
  const n = one.n + two.n, share = n && two.n / n;
  const apart = two.mean.map((v, d) => v - one.mean[d]);
  const scatter = withSquare(one.scatter.map((v, at) => v + two.scatter[at]), apart, one.n * share);
  return { n, mean: one.mean.map((v, d) => v + share * apart[d]), scatter };
}

/** Return mean and within-class variance of a column from its moments by class; where all of a class are one, that of all. */
function scaleOf(sums) {
  const groups = sums.filter(({ n }) => n), sum = (term) => groups.reduce((all, one) => all + term(one), 0);
  const rows = sum(({ n }) => n), freedom = rows - groups.length, [origin] = groups[0].mean;
  const move = sum(({ n, mean }) => (n / rows) * (mean[0] - origin)), mean = origin + move;
  const noise = (8 * Number.EPSILON * mean) ** 2, within = sum(({ scatter }) => scatter[0]);
  if (freedom && within / freedom > noise) return { mean, variance: within / freedom };
  const variance = (within + sum((one) => one.n * (one.mean[0] - origin - move) ** 2)) / rows;
  return { mean, variance: variance > noise ? variance : 0 };
}

/** Return the posterior of a class: location, the kappa rows that it is worth, and what its rows add to the scale. */
function posteriorOf(prior, { n, mean, scatter }) {
  const kappa = KAPPA + n, apart = mean.map((v, d) => v - prior.mean[d]);
  const location = prior.mean.map((v, d) => v + (n / kappa) * apart[d]);
  return { n, kappa, location, spread: withSquare(scatter, apart, (KAPPA * n) / kappa) };
}

/**
 * Return the scale matrix of the classes that share it, with Cholesky's factor: of an inverse Wishart of nu degrees of
 * freedom, which is, where D = 1, the inverse gamma of alpha = nu/2 and beta = matrix/2.
 */
function covarianceOf({ variance, nu, worth }, posteriors) {
  const D = variance.length, [matrix, root] = [new Float64Array(D * D), new Float64Array(D * D)];
  const dof = posteriors.reduce((sum, { n }) => sum + n, nu - D + 1);
  let level = logGammaRatio(dof / 2, D / 2);
  for (let r = 0; r < D; r++) {
    for (let c = 0; c <= r; c++) {
      let v = r === c ? worth * variance[r] : 0;
      for (const { spread } of posteriors) v += spread[r * D + c];
      matrix[c * D + r] = matrix[r * D + c] = v;
      for (let s = 0; s < c; s++) v -= root[r * D + s] * root[c * D + s];
      root[r * D + c] = c === r ? Math.sqrt(v) : v / root[c * D + c];
    }
    level -= Math.log(root[r * D + r]);
  }
  return { matrix, root, dof, level };
}

/** Return the log density of the row that begins at a place: Student's t. */
function logStudent(x, first, { location, kappa }, { root, level, dof }) {
  const D = location.length, z = new Float64Array(D), unit = 1 + 1 / kappa;
  let square = 0;
  for (let r = 0; r < D; r++) {
    let v = x[first + r] - location[r];
    for (let s = 0; s < r; s++) v -= root[r * D + s] * z[s];
    z[r] = v / root[r * D + r];
    square += z[r] * z[r];
  }
  return level - 0.5 * D * Math.log(Math.PI * unit) - 0.5 * (dof + D) * Math.log1p(square / unit);
}

/** Return rows of some columns of numbers, and the places of those of each class that have no gap. */
function valuesByClass(columns, { codes, K }) {
  const D = columns.length, x = new Float64Array(codes.length * D), seen = Array.from({ length: K }, () => []);
  columns.forEach(({ values }, d) => values.forEach((v, i) => (x[i * D + d] = v)));
  codes.forEach((k, i) => Number.isNaN(x[i * D]) || seen[k].push(i));
  return [{ x, D }, seen];
}

/** Return the leaf of a column of numbers or of complete vectors, whose covariance the classes share if it is tied. */
function gaussianLeaf(columns, about) {
  const { codes, K, vector, tied } = about, D = columns.length, [rows, seen] = valuesByClass(columns, about);
  const [mean, variance] = ["mean", "variance"].map((name) => Float64Array.from(columns, (column) => column[name]));
  const prior = { mean, variance, nu: vector ? 3 * D : 2, worth: vector ? 2 * D - 1 : 2 };
  const covariances = (classes) => {
    const shared = tied && covarianceOf(prior, classes);
    return classes.map((one) => shared || covarianceOf(prior, [one]));
  };
  const whole = seen.map((places) => posteriorOf(prior, momentsOf(rows, places, 0))), spread = covariances(whole);

  /** Add the terms of rows from low to high: as in Python all others are summed by halves of halves, none taken out. */
  function visit(joint, sign, inside, low, high, outside) {
    const joined = (places, from) => outside.map((sum, k) => together(sum, momentsOf(rows, places[k], from)));
    if (high - low > 64) {
      const middle = low + Math.ceil((high - low) / 2);
      const [one, two] = [(i) => i < middle, (i) => i >= middle].map((of) => inside.map((places) => places.filter(of)));
      visit(joint, sign, one, low, middle, joined(two, middle));
      visit(joint, sign, two, middle, high, joined(one, low));
      return;
    }
    const all = joined(inside, low).map((sums) => posteriorOf(prior, sums)), others = tied ? [] : covariances(all);
    inside.forEach((places, own) => places.forEach((i) => {
      const mine = posteriorOf(prior, together(outside[own], momentsOf(rows, places, low, i)));
      const classes = all.map((one, k) => (k === own ? mine : one));
      const covariance = covarianceOf(prior, tied ? classes : [mine]);
      classes.forEach((one, k) => {
        joint[i * K + k] += sign * logStudent(rows.x, i * D, one, tied || k === own ? covariance : others[k]);
      });
    }));
  }
  return {
    leftOut: (joint, sign) => visit(joint, sign, seen, 0, codes.length, seen.map(() => momentsOf(rows, [], 0))),
    arrays: whole.map(({ location, kappa }, k) => {
      const { matrix, dof } = spread[k], square = matrix.map((v) => (v * (1 + 1 / kappa)) / dof);
      return { location, scale: vector ? square : square.map(Math.sqrt), dof, kappa };
    }),
    draw(k, random) {
      const { location, kappa } = whole[k], { root, dof } = spread[k], z = columns.map(random.normal);
      const size = Math.sqrt((1 + 1 / kappa) / (2 * random.gamma(dof / 2)));
      return z.map((_, r) => location[r] + size * sumOf(z.map((v, s) => v * root[r * D + s])));
    },
  };
}

/**
 * Return the leaf of bools or categories, under Dirichlet(1), or of counts, Poisson under Gamma(1, 1/m), m their mean
 * in all classes. Sums are whole numbers, of which a row is taken out exactly.
 */
function countedLeaf({ values, codes: places, sums }, { codes, K }) {
  const entries = values || places, counts = sums.map((one) => one.sums);
  const [rows, events] = [0, 1].map((place) => sumOf(counts.map((one) => one[place])));
  const unit = Math.max(rows, 1) / Math.max(events, 1); // rows of one event
  const logMass = (v, of, out) => Math.log((of[v] + 1 - out) / (sumOf(of) + of.length - out));
  const logCount = (x, [n, sum], out) => {
    const a = 1 + sum - out * x, b = n + unit - out;
    return logWays(a, x) - a * Math.log1p(1 / b) - x * Math.log1p(b);
  };
  const term = values ? logCount : logMass; // with a row of this value, in this class, or without it
  const add = (v, from, joint, sign, own) => counts.forEach((of, k) => (joint[from + k] += sign * term(v, of, Number(k === own))));
  const arrays = counts.map((of) => {
    if (values) return { mean: (1 + of[1]) / (of[0] + unit), rate: of[0] + unit };
    const total = sumOf(of) + of.length;
    return { mass: of.map((count) => (count + 1) / total), total };
  });
  const drawnCount = (left, random, count = 0) => { // to an event that is early but for a chance of 1e-15, or the next
    const ahead = Math.max(1, Math.floor(left - 8 * Math.sqrt(left))), time = random.gamma(ahead);
    return time > left ? count : drawnCount(left - time, random, count + ahead);
  };
  return {
    leftOut: (joint, sign) => codes.forEach((k, i) => entries[i] >= 0 && add(entries[i], i * K, joint, sign, k)),
    arrays,
    draw(k, random) {
      const { mass, mean, rate } = arrays[k];
      return [values ? drawnCount(random.gamma(mean * rate) / rate, random) : chosen(mass, random)];
    },
  };
}

/** Draw a place by the probabilities of all. */
function chosen(probability, random) {
  let left = random.uniform();
  return Math.max(probability.findIndex((share) => (left -= share) < 0), 0); // 0 where the shares round to less than 1
}

/** Return a column of the rows that have a class, with its sums by class, and its scale. */
function learnedColumn(column, about) {
  const { places, codes, K } = about, own = (of) => of && places.map((i) => of[i]);
  const [values, found] = [own(column.values), own(column.codes)];
  const plain = { ...column, values, codes: null, categories: null };
  if (column.kind === "number") {
    const [rows, seen] = valuesByClass([{ values }], about), sums = seen.map((of) => momentsOf(rows, of, 0));
    const scale = scaleOf(sums);
    if (scale.variance > 1e-300) return { ...plain, sums, ...scale };
    throw new Error(`${column.name} varies by rounding alone, or below 1e-150: give it in smaller units, or leave it out.`);
  }
  if (column.kind === "count") {
    const seen = Array.from({ length: K }, (_, k) => values.filter((v, i) => v >= 0 && codes[i] === k));
    const sums = seen.map((some) => ({ sums: [some.length, sumOf(some)] }));
    return { ...plain, sums, base: -sumOf(seen.flat().map((v) => logGamma(v + 1))) };
  }
  const V = column.categories.length, sums = Array.from({ length: K }, () => ({ sums: new Array(V).fill(0) }));
  found.forEach((v, i) => v >= 0 && sums[codes[i]].sums[v]++);
  return { ...column, values: null, codes: found, sums };
}

/** Return arrays by class of some parts as arrays of all, by name. */
function beside(parts) {
  const numbers = (v) => (typeof v === "number" ? v : Array.from(v));
  const all = (name) => parts[0].flatMap((_, k) => parts.flatMap((one) => numbers(one[k][name])));
  return Object.fromEntries(Object.keys(parts[0][0]).map((name) => [name, all(name)]));
}

/** Return the blocks of a schema: columns of one kind and categories; counts, which `features` names, are first. */
function blocksOf(columns) {
  const blocks = new Map(), names = new Set(["classes"]), isLater = (j) => Number(columns[j].kind !== "count");
  for (const j of [...columns.keys()].sort((a, b) => isLater(a) - isLater(b))) {
    const { kind, categories } = columns[j], levels = kind === "category" ? categories : null;
    const key = JSON.stringify([kind, levels]);
    if (!blocks.has(key)) blocks.set(key, { leaf: OF_KIND[kind][0], categories: levels, places: [] });
    blocks.get(key).places.push(j);
  }
  return [...blocks.values()].map((block) => {
    const single = block.leaf === "categorical" && block.places.length === 1;
    let name = single ? columns[block.places[0]].name : block.leaf;
    while (names.has(name)) name += "_";
    names.add(name);
    return { ...block, name, single };
  });
}

/** Return the leaves of columns, with the places that they are of. */
function leavesOf(columns, places, about) {
  if (about.vector) return [{ of: places, leaf: gaussianLeaf(places.map((j) => columns[j]), about) }];
  const leaf = (one) => (one.kind === "number" ? gaussianLeaf([one], about) : countedLeaf(one, about));
  return places.map((j) => ({ of: [j], leaf: leaf(columns[j]) }));
}

/**
 * Learn a classifier of columns that vary: "naive bayes" of all kinds, or of numbers without gaps the discriminants "full"
 * and "shared", full for all classes. Rows without a class are left out: those of the result have these places among all.
 */
function learn(structure, columns, target) {
  const places = [...target.codes.keys()].filter((i) => target.codes[i] >= 0);
  const codes = places.map((i) => target.codes[i]), counts = target.classes.map((_, k) => codes.filter((code) => code === k).length);
  const tied = structure === "shared", vector = structure !== "naive bayes";
  const n = codes.length, K = counts.length, about = { places, codes, K, vector, tied };
  const used = columns.map((column) => learnedColumn(column, about));
  const parts = leavesOf(used, [...used.keys()], about), blocks = blocksOf(used);
  const prior = codes.flatMap((own) => counts.map((count, k) => Math.log((count + 1 - (k === own)) / (n - 1 + K))));
  const ofRow = (joint, i) => joint.slice(i * K, (i + 1) * K);
  const lossOf = (joint) => sumOf(codes.map((k, i) => logSum(ofRow(joint, i)) - joint[i * K + k])) / n;
  const joint = Float64Array.from(prior);
  for (const { leaf } of parts) leaf.leftOut(joint, 1);
  const totals = codes.map((_, i) => logSum(ofRow(joint, i)));
  const probability = joint.map((v, at) => Math.exp(v - totals[Math.floor(at / K)])), base = lossOf(prior); // of no column
  const made = { structure, columns: used, target, rows: n, places, base, leftOut: { probability, loss: lossOf(joint) } };
  return {
    ...made,
    without(j) {
      const others = vector ? Float64Array.from(prior) : joint.slice();
      const changed = leavesOf(used, vector ? [...used.keys()].filter((place) => place !== j) : [j], about);
      for (const { leaf } of changed) leaf.leftOut(others, vector ? 1 : -1);
      return lossOf(others);
    },
    get statistics() { // by block of the schema, class by class, then column by column
      const ofVectors = ([rows, seen]) => seen.map((some) => momentsOf(rows, some, 0));
      const summed = ({ places: of, ...block }) => {
        const own = of.map((j) => used[j]), base = sumOf(own.map((one) => one.base || 0));
        const sums = beside(vector ? [ofVectors(valuesByClass(own, about))] : own.map((one) => one.sums));
        return { ...block, columns: own.map(({ name }) => name), ...sums, base };
      };
      return { classes: counts, blocks: blocks.map(summed) };
    },
    record: (words) => recordOf({ ...made, vector, counts, parts, blocks }, words),
  };
}

/** Return what the record says of a column, of which values are drawn. */
function describedColumn({ name, kind, categories, values, by }, drawn) {
  const column = { name, kind, ...(values && by), ...(categories && { categories }) };
  if (kind === "bool" || kind === "count") [, , column.words] = OF_KIND[kind];
  const sorted = Float64Array.from(drawn).sort(), [low, one, middle, three, high] =
    [0.0005, 0.25, 0.5, 0.75, 0.9995].map((level) => sorted[Math.floor(level * DRAWN)]);
  if (values) {
    const seen = values.filter((v) => !Number.isNaN(v)), unit = 10 ** (Math.floor(Math.log10(high - low)) - 1);
    const near = (v) => (unit ? Number((Math.round(v / unit) * unit).toPrecision(15)) : v); // two digits of the width
    column.range = [seen.every((v) => v >= 0) ? Math.max(near(low), 0) : near(low), near(high)];
  }
  const code = (v) => Math.round(1000 * Math.asinh((v - middle) / (three - one || 1))) + 32768;
  const codes = drawn.slice(0, 500).map((v) => Math.min(Math.max(code(v), 0), 65535));
  return { ...column, drawn: [middle, three - one || 1, codes] };
}

/** Return a classifier as `plain` of Python writes it; the rest of about is version, date and the like. */
function recordOf({ structure, columns, target, rows, vector, counts, parts, blocks }, { reading, ...about }) {
  const [K, random] = [counts.length, generator(0)];
  const shares = counts.map((count) => (count + 1) / (rows + K));
  const drawn = columns.map(() => new Array(DRAWN));
  for (let r = 0; r < DRAWN; r++) {
    const k = chosen(shares, random);
    for (const { of, leaf } of parts) leaf.draw(k, random).forEach((v, d) => (drawn[of[d]][r] = v));
  }
  const factors = blocks.map(({ places }) => {
    const own = parts.filter(({ of }) => places.includes(of[0])), { kind, categories } = columns[places[0]];
    const factor = { columns: own.flatMap(({ of }) => of), ...beside(own.map(({ leaf }) => leaf.arrays)) };
    const more = { ...(categories && { size: categories.length }), ...(structure === "shared" && { tied: true }) };
    return { kind: vector ? "vector" : OF_KIND[kind][1], ...factor, ...more };
  });
  const model = vector ? "GaussianDiscriminantClassifier" : "NaiveBayesClassifier";
  const known = { package: "bayesgen", model, rows, shares: counts.map((n) => n / rows), score: null, draws: null };
  return {
    ...{ generative: true, gaps: true, kind: "exact", interval: true, exponent: 1, derived: [], reading },
    ...{ classes: target.classes, target: target.name, infinite: OF_KIND.number[2], unseen: vector ? "error" : "missing", unused: [] },
    columns: columns.map((column, j) => describedColumn(column, drawn[j])),
    order: blocks.flatMap(({ places }) => places),
    priors: shares,
    members: { count: 1, log: [0], classes: shares, total: rows + K },
    factors,
    about: { ...known, ...about },
  };
}

// ---- answers --------------------------------------------------------------------------------------------------------

/** Return the log probability of each class. @param {Object<string, *>} row @returns {number[]} */
function predictLogProba(row, { priors } = {}) {
  return logProba(complete(row), checked(priors));
}

/** Return the probability of each class, unknown entries integrated out. @returns {number[]} */
function predictProba(row, options) {
  const proba = predictLogProba(row, options).map(Math.exp);
  const sum = proba.reduce((a, b) => a + b);
  return proba.map((p) => p / sum);
}

// As many draws as some tenths of a second allow: 200,000 of all parameters, and 1,000 to 10,000 rounds of them.
const drawnAtOnce = factors.map((f) => f.groups * f.columns.length * (f.size || 1));
const DRAWS = Math.round(Math.min(1e4, Math.max(1e3, 2e5 / drawnAtOnce.reduce((sum, size) => sum + size, K))));
let posterior = null; // draws of the parameters, kept for the next row

/** Return a mixture whose members are draws of the parameters. */
function drawnMixture(draws, seed) {
  if (model.kind === "draws") return { factors, members };
  if (posterior && posterior.draws === draws && posterior.seed === seed) return posterior;
  const random = generator(seed);
  const share = new Float64Array(draws * K);
  for (let s = 0; s < draws; s++) share.set(dirichlet(members.share, model.members.total, random), s * K);
  const copies = factors.map((f) => {
    const { fields, drawn, densitiesOfDraws, prepare } = KINDS[f.kind];
    const copy = { ...f, groups: f.groups * draws, alternatives: draws };
    copy.cell = Array.from({ length: copy.groups }, (_, g) => g);
    if (densitiesOfDraws) return { ...copy, densities: densitiesOfDraws(f, draws, random) };
    for (const [field, size] of Object.entries(fields)) copy[field] = new Float64Array(SIZES[size](copy)).fill(Infinity);
    drawn(f, copy, random);
    if (prepare) prepare(copy);
    return copy;
  });
  const drawn = { log: new Float64Array(draws), count: draws, share, takes: everyFactor };
  posterior = { draws, seed, factors: copies, members: drawn };
  return posterior;
}

/** Return the value below which a share of sorted values lies, as NumPy's quantile does. */
function quantile(sorted, level) {
  const place = level * (sorted.length - 1);
  const low = Math.floor(place);
  return sorted[low] + (place - low) * ((low + 1 < sorted.length ? sorted[low + 1] : sorted[low]) - sorted[low]);
}

/**
 * Return the central posterior interval of each class probability, or null where there is none.
 * @returns {[number, number][] | null}
 */
function predictProbaInterval(row, { priors, level = 0.9, draws = DRAWS, seed = 1 } = {}) {
  const [x, shares] = [complete(row), checked(priors)];
  if (!model.interval) return null;
  const mixture = drawnMixture(draws, seed);
  const joint = jointOf(given(x, mixture), shares);
  const proba = Array.from({ length: K }, () => new Float64Array(mixture.members.count));
  for (let m = 0; m < mixture.members.count; m++) {
    const prior = Array.from(shares || mixture.members.share.subarray(m * K, (m + 1) * K), Math.log);
    reported([...joint.subarray(m * K, (m + 1) * K)], prior).forEach((v, k) => (proba[k][m] = Math.exp(v)));
  }
  return proba.map((values) => {
    values.sort();
    return [quantile(values, 0.5 - level / 2), quantile(values, 0.5 + level / 2)];
  });
}

/**
 * Return what each entry adds to the log odds of a class against all others: the mean over two orders, from the first
 * column to the last and back, with a column unknown until it is reached.
 * @returns {{column: string, value: *, contribution: number}[]}
 */
function explain(row, label, { priors } = {}) {
  const [x, shares] = [complete(row), checked(priors)];
  if (K < 2) throw new Error("odds need two classes, and the classifier learned one only");
  const whole = logProba(x, shares);
  const k = isUnknown(label) ? whole.indexOf(Math.max(...whole)) : model.classes.indexOf(label);
  if (k < 0) throw new Error(`label must be one of ${model.classes.join(", ")}, got ${label}`);
  const odds = (known) => {
    const proba = logProba(x.map((v, j) => (known(j) ? v : begun(j, v))), shares);
    return proba[k] === -Infinity ? -Infinity : proba[k] - logSum(proba.filter((_, other) => other !== k));
  };
  const places = model.order; // of the columns, factor by factor
  const along = (order) => {
    const path = order.map((_, count) => odds((j) => order.indexOf(j) < count));
    path.push(odds(() => true));
    return new Map(order.map((j, count) => [j, path[count + 1] - path[count]]));
  };
  const [forwards, backwards] = [along(places), along([...places].reverse())];
  const mean = (steps) => steps.reduce((sum, step) => sum + step, 0) / Math.max(steps.length, 1);
  return model.columns.map((column, j) => ({
    column: column.name,
    value: Number.isNaN(x[j]) ? null : row[column.name],
    // a step is NaN from one infinity to the same one, where a point estimate rules classes out
    contribution: mean([forwards.get(j), backwards.get(j)].filter((step) => !Number.isNaN(step))),
  }));
}

/** Return an entry before it is known: 0 for a word of a bag, tosses as they are. */
const begun = (j, value) => (model.columns[j].given ? value : model.columns[j].word && value === value ? 0 : NaN);

/** Return the action of least expected loss. @param {number[]} probabilities @param {number[][]} loss (K, A) */
function decide(probabilities, loss) {
  if (loss.length !== K || !loss.every((line) => line.length === loss[0].length)) {
    throw new Error(`loss must have a line for each of the ${K} classes, all of one length`);
  }
  const losses = loss[0].map((_, a) => probabilities.reduce((sum, p, k) => sum + p * loss[k][a], 0));
  return { action: losses.indexOf(Math.min(...losses)), losses };
}

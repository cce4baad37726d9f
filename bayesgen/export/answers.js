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

// As many draws as some tenths of a second allow: 200,000 of all parameters, of an average 10,000.
const drawnAtOnce = factors.map((f) => f.groups * f.columns.length * (f.size || 1));
const DRAWS = model.average ? 1e4 : Math.round(Math.min(1e4, Math.max(1e3, 2e5 / drawnAtOnce.reduce((sum, size) => sum + size, K))));
let posterior = null; // draws, kept for the next row

/** Return draws of a factor of one alternative: a factor whose alternatives they are. */
function drawnFactor(f, draws, random) {
  const { fields, drawn, densitiesOfDraws, prepare } = KINDS[f.kind];
  const copy = { ...f, groups: f.groups * draws, alternatives: draws };
  copy.cell = Array.from({ length: copy.groups }, (_, g) => f.cell[g % f.groups] + K * Math.floor(g / f.groups));
  if (f.share) copy.share = drawnShares(f, copy, random);
  if (densitiesOfDraws) return { ...copy, densities: densitiesOfDraws(f, draws, random) };
  for (const [field, size] of Object.entries(fields)) copy[field] = new Float64Array(SIZES[size](copy)).fill(Infinity);
  drawn(f, copy, random);
  if (prepare) prepare(copy);
  return copy;
}

/** Return a mixture whose members are draws of the parameters. */
function drawnMixture(draws, seed) {
  if (model.kind === "draws") return whole;
  if (posterior && posterior.draws === draws && posterior.seed === seed) return posterior;
  const random = generator(seed);
  const share = new Float64Array(draws * K);
  for (let s = 0; s < draws; s++) share.set(dirichlet(members.share.subarray(0, K), model.members.total, random), s * K);
  const drawn = { log: new Float64Array(draws), count: draws, share, takes: Array.from({ length: draws }, (_, s) => everyFactor(s)) };
  const made = model.average ? drawnMembers(drawn, random) : { factors: factors.map((f) => drawnFactor(f, draws, random)), members: drawn };
  posterior = { draws, seed, ...made };
  return posterior;
}

/** Return probabilities (K arrays) of draws, given as logs, shifted to their means. */
function shifted(logs, means) {
  const [size, top] = [logs[0].length, means.indexOf(Math.max(...means))];
  const others = [...means.keys()].filter((k) => k !== top && means[k] > 0);
  const proba = logs.map(() => new Float64Array(size));
  let [shift, back, last, pace] = [means.map((p) => (p > 0 ? 0 : -Infinity)), null, Infinity, 1];
  for (let turn = 0; turn < 300; turn++) {
    const [a, sums] = [logs.map(() => new Float64Array(K + 1)), means.map(() => 1e-308)];
    for (let s = 0; s < size; s++) {
      const log = shift.map((v, k) => v + Math.max(logs[k][s], -1e4));
      const total = logSum(log);
      log.forEach((v, k) => (sums[k] += proba[k][s] = Math.exp(v - total)));
      for (const k of others) for (const l of others) a[k][l] -= proba[k][s] * proba[l][s];
    }
    const apart = means.map((p, k) => (p > 0 ? Math.log(p) - Math.log(sums[k] / size) : 0));
    const far = Math.max(...apart.map(Math.abs));
    if (far < 1e-10) break;
    if (!back || far < last / 2) {
      for (const k of others) [a[k][k], a[k][K]] = [a[k][k] + sums[k], apart[k] * sums[k]];
      for (const i of others) for (const k of others) if (k !== i) a[k] = a[k].map((v, l) => v - (a[k][i] / a[i][i]) * a[i][l]);
      if (!back) pace = far < last && far > last / 2 ? 2 * pace : 1; // as Python's `shifted`: slow steps double
      [back, last] = [shift.map((v, k) => v + pace * apart[k]), far];
      shift = shift.map((v, k) => v + (a[k][K] / a[k][k] || 0));
    } else [shift, back] = [back, null];
  }
  return proba;
}

/** Return the shortest interval of each class probability that holds it, of an average the mean of those of 1,000 draws; or null. */
function predictProbaInterval(row, { priors, level = 0.9, draws = DRAWS, seed = 1 } = {}) {
  const [x, shares] = [complete(row), checked(priors)];
  if (!model.interval) return null;
  const mixture = drawnMixture(draws, seed), about = given(x, mixture);
  let joint;
  if (model.average) refuseFar(about, "draws of class probabilities");
  else joint = jointOf(about, shares);
  const ofDraw = (m) => {
    if (model.average) return averaged(about, shares, m, m + 1);
    const [scores, prior] = [joint, mixture.members.share].map((of) => [...of.subarray(m * K, (m + 1) * K)]);
    return reported(scores, (shares || prior).map(Math.log));
  };
  const [size, means] = [mixture.members.count, predictProba(row, { priors })];
  const parts = model.average ? Math.ceil(size / 1000) : 1, result = means.map(() => [0, 0]);
  for (let part = 0; part < parts; part++) {
    const logs = means.map(() => new Float64Array(Math.ceil((size - part) / parts))), [{ length }] = logs;
    for (let s = 0; s < length; s++) ofDraw(part + s * parts).forEach((v, k) => (logs[k][s] = v));
    const count = Math.min(length, Math.max(2, Math.ceil(level * length)));
    shifted(logs, means).forEach((values, k) => {
      const ends = Array.from(values.sort().subarray(count - 1), (high, i) => [values[i], high]);
      const out = ([a, b]) => Math.max(a - means[k], means[k] - b, 0);
      const best = ends.reduce((a, b) => ((out(b) - out(a) || b[1] - b[0] - a[1] + a[0]) < 0 ? b : a));
      best.forEach((end, i) => (result[k][i] += end / parts));
    });
  }
  return result;
}

/**
 * Return what each entry adds to the log odds of a class: the mean over two orders, from the first column to the last
 * and back, each unknown until it is reached.
 * @returns {{column: string, value: *, contribution: number}[]}
 */
function explain(row, label, { priors } = {}) {
  const [x, shares] = [complete(row), checked(priors)];
  if (K < 2) throw new Error("odds need two classes, and the classifier learned one only");
  const whole = logProba(x, shares);
  const k = isUnknown(label) ? whole.indexOf(Math.max(...whole)) : model.classes.indexOf(label);
  if (k < 0) throw new Error(`label must be one of ${model.classes.join(", ")}, got ${label}`);
  const odds = (known) => {
    // before it is known a word of a bag is 0, and tosses are as they are
    const entries = model.columns.map(({ given, word }, j) => (known(j) || given ? x[j] : word && x[j] === x[j] ? 0 : NaN));
    const proba = logProba(entries, shares);
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
    // a step is NaN from one infinity to the same one, where a point rules classes out
    contribution: mean([forwards.get(j), backwards.get(j)].filter((step) => !Number.isNaN(step))),
  }));
}

/** Return the action of least expected loss. @param {number[]} probabilities @param {number[][]} loss K x A */
function decide(probabilities, loss) {
  if (loss.length !== K || !loss.every((line) => line.length === loss[0].length)) {
    throw new Error(`loss must have a line for each of the ${K} classes, all of one length`);
  }
  const losses = loss[0].map((_, a) => probabilities.reduce((sum, p, k) => sum + p * loss[k][a], 0));
  return { action: losses.indexOf(Math.min(...losses)), losses };
}

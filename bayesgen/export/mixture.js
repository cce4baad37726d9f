// ---- the mixture ----------------------------------------------------------------------------------------------------
// A factor is the density of some entries of a row in each of its cells: an alternative and a class. A member takes an
// alternative of some factors, and is their product.

const KNOWN = model.kind === "point" || model.kind === "draws"; // the parameters, under which Python has a density of 0
const LOG_ZERO = -5e289; // below this logarithm

const factors = model.factors.map((f) => {
  if ("view" in f) predictives(f);
  f.groups = f.cell ? f.cell.length : f.groups || K;
  f.cell = f.cell || Array.from({ length: f.groups }, (_, g) => g); // alternative times K, plus class
  f.alternatives = Math.floor(f.cell[f.groups - 1] / K) + 1;
  const { fields, prepare } = KINDS[f.kind];
  f.starts = f.columns.reduce((starts, _, i) => [...starts, starts[i] + (f.sizes ? f.sizes[i] : f.size)], [0]); // of a list
  for (const [field, size] of Object.entries(fields)) f[field] = flat(f[field], SIZES[size](f));
  if (prepare) prepare(f);
  return f;
});
const members = { log: flat(model.members.log, model.members.count), count: model.members.count };
const learned = flat(model.members.classes, members.count * K); // of the classes under each member; the same in an average
members.share = learned.length > K ? learned : Float64Array.from({ length: members.count * K }, (_, place) => learned[place % K]);
const everyFactor = (alternative) => factors.map((_, f) => [f, alternative]);
// pairs of a factor and an alternative
members.takes = model.members.takes || Array.from(members.log, (_, m) => everyFactor(members.count > 1 ? m : 0));
members.logShare = members.share.map(Math.log);
for (const name of model.average ? ["weights", "exponents", "least", "spread", "looseness"] : []) members[name] = flat(model.members[name], members.count);
const whole = { factors, members };

/** Return log p(x | g) of entries under every group of a factor; 0 for a row without entries. */
function densities(f, z) {
  if (!entriesOf(f, z).length) return new Float64Array(f.groups);
  if (f.densities) return f.densities(z); // under draws of the parameters
  const kind = KINDS[f.kind];
  if (kind.all) return kind.all(f, z);
  const result = new Float64Array(f.groups);
  if (f.joint || !kind.density) result.forEach((_, g) => (result[g] = kind.whole(f, g, z)));
  else f.columns.forEach((j, i) => {
    if (Number.isNaN(z[j])) return;
    for (let g = 0; g < f.groups; g++) result[g] += kind.density(f, g, i, z[j], z.beyond[j] || 0);
  });
  return KNOWN ? result.map((v) => (v < LOG_ZERO ? -Infinity : v)) : result;
}

/** Return log p(x | alternative, class) from log p(x | g). */
function byClass(f, density) {
  const size = f.alternatives * K;
  if (f.groups === size) return density;
  const [top, sum] = [new Float64Array(size).fill(-Infinity), new Float64Array(size)];
  for (let g = 0; g < f.groups; g++) top[f.cell[g]] = Math.max(top[f.cell[g]], (density[g] += f.share[g % f.share.length]));
  for (let g = 0; g < f.groups; g++) if (density[g] > -Infinity) sum[f.cell[g]] += Math.exp(density[g] - top[f.cell[g]]);
  return sum.map((v, cell) => Math.log(v) + top[cell]);
}

/** Return a row with its entries, and log p(x | alternative, class) by factor, worked out where it is asked for. */
function given(x, mixture = whole) {
  const [z, known] = [entriesOfRow(x), []];
  const of = (place) => known[place] || (known[place] = byClass(mixture.factors[place], densities(mixture.factors[place], z)));
  return { x, z, mixture, of };
}

/** Return the same with the entry z[e] known, which is derived of column j or is the column. */
function moved(about, j, e, value) {
  const x = [...about.x];
  x[j] = e === j ? value : back(e, value);
  const there = given(x, about.mixture);
  there.z[e] = value;
  return { ...there, of: (place) => (placeIn(factors[place], j) < 0 ? about.of(place) : there.of(place)) };
}

/** Return log p(x | class) under one member of a mixture, written over what is given. */
function underMember(about, m, result) {
  result.fill(0);
  for (const [f, a] of about.mixture.members.takes[m]) {
    const density = about.of(f);
    for (let k = 0; k < K; k++) result[k] += density[a * K + k];
  }
  return result;
}

/** Return log p(x, class, member), one member after the other. */
function jointOf(about, shares) {
  if (model.score) return byDraw(about.x);
  const { count, log, share } = about.mixture.members;
  const [joint, density] = [new Float64Array(count * K).fill(-Infinity), new Float64Array(K)];
  for (let m = 0; m < count; m++) {
    if (log[m] === -Infinity) continue;
    underMember(about, m, density);
    for (let k = 0; k < K; k++) joint[m * K + k] = log[m] + Math.log(shares ? shares[k] : share[m * K + k]) + density[k];
  }
  return joint;
}

/** Return sums over members of exp(joint), as logs by class. */
function overMembers(joint) {
  const count = joint.length / K;
  return Array.from({ length: K }, (_, k) => logSum(Float64Array.from({ length: count }, (_, m) => joint[m * K + k])));
}

const logPrior = overMembers(members.logShare.map((v, place) => v + members.log[Math.floor(place / K)]));

/** Return the log class probabilities that the classifier reports, from log p(x, k). */
function reported(joint, prior) {
  let scores = joint;
  if (model.exponent !== 1) {
    scores = joint.map((v, k) => (v === -Infinity ? v : prior[k] + model.exponent * (v - prior[k])));
  }
  let total = logSum(scores);
  if (total === -Infinity) [scores, total] = [prior, logSum(prior)]; // impossible under every class, as a point may say
  return scores.map((v) => v - total);
}

function checked(priors) {
  if (priors === undefined || priors === null) return null;
  if (model.score) throw new Error("a regression has no shares of the classes that others could take the place of");
  const sum = priors.reduce((a, b) => a + b, 0);
  if (priors.length !== K || !priors.every((p) => p >= 0) || Math.abs(sum - 1) > 1e-6) {
    throw new Error(`priors must be ${K} probabilities that sum to 1`);
  }
  return priors.map((p) => p / sum);
}

/** Return the log class probabilities of a row; other members than those of the classifier may answer. */
function answered(about, shares) {
  if (model.average) return averaged(about, shares);
  return reported(overMembers(jointOf(about, shares)), shares ? shares.map(Math.log) : logPrior);
}

/** Return log class probabilities of a row of numbers. */
const logProba = (x, shares) => answered(given(x), shares);

// ---- the mixture ----------------------------------------------------------------------------------------------------

function prepared(f) {
  f.groups = f.groups || K;
  f.cell = f.cell || Array.from({ length: f.groups }, (_, g) => g); // alternative times K, plus class
  f.alternatives = Math.floor(f.cell[f.groups - 1] / K) + 1;
  const { fields, prepare } = KINDS[f.kind];
  for (const [field, size] of Object.entries(fields)) f[field] = flat(f[field], SIZES[size](f));
  if (prepare) prepare(f);
  return f;
}

const factors = model.factors.map(prepared);
const members = { log: flat(model.members.log, model.members.count), count: model.members.count };
members.share = flat(model.members.classes, members.count * K); // of the classes under each member
members.choice = (m, f) => (model.members.choice ? model.members.choice[m][f] : members.count > 1 ? m : 0);

/** Return log p(x | g) of a row under every group of a factor; 0 for a row without entries. */
function densities(f, x) {
  if (f.densities) return f.densities(x); // under draws of the parameters
  const kind = KINDS[f.kind];
  const result = new Float64Array(f.groups);
  if (f.joint || !kind.density) return result.map((_, g) => kind.whole(f, g, x));
  f.columns.forEach((j, i) => {
    if (Number.isNaN(x[j])) return;
    const z = kind.forward ? kind.forward(f, i, x[j]) : x[j];
    const jacobian = f.shift === undefined ? 0 : z;
    for (let g = 0; g < f.groups; g++) result[g] += kind.density(f, g, i, z) - jacobian;
  });
  return result;
}

/** Return log p(x | alternative, class) from log p(x | g). */
function byClass(f, density) {
  if (f.groups === f.alternatives * K) return density;
  const terms = Array.from({ length: f.alternatives * K }, () => []);
  f.cell.forEach((cell, g) => terms[cell].push(density[g] + f.share[g]));
  return Float64Array.from(terms, logSum);
}

/** Return what the entries of a row say: log p(x | g), log p(x | alternative, class), log p(x, class, member). */
function given(x, shares, mixture = { factors, members }) {
  if (model.score) return { joint: byDraw(x) };
  const density = mixture.factors.map((f) => densities(f, x));
  const classes = mixture.factors.map((f, place) => byClass(f, density[place]));
  const joint = new Float64Array(mixture.members.count * K);
  for (let m = 0; m < mixture.members.count; m++) {
    for (let k = 0; k < K; k++) {
      let sum = mixture.members.log[m] + Math.log(shares ? shares[k] : mixture.members.share[m * K + k]);
      for (let f = 0; f < classes.length; f++) {
        const choice = mixture.members.choice(m, f);
        if (choice >= 0) sum += classes[f][choice * K + k];
      }
      joint[m * K + k] = sum;
    }
  }
  return { density, classes, joint };
}

/** Return sums over members of exp(joint), as logs by class. */
function overMembers(joint) {
  if (joint.length === K) return [...joint];
  return Array.from({ length: K }, (_, k) => logSum(joint.filter((_, place) => place % K === k)));
}

const logPrior = Array.from({ length: K }, (_, k) =>
  logSum(Array.from(members.log, (w, m) => w + Math.log(members.share[m * K + k]))),
);

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

/** Return log class probabilities of a row of numbers. */
function logProba(x, shares) {
  return reported(overMembers(given(x, shares).joint), shares ? shares.map(Math.log) : logPrior);
}

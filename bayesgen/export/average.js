// ---- the average ----------------------------------------------------------------------------------------------------
// Its members answer p(class | row) by tempered densities or scores; those with a density of rows make a mixture too.

const FARTHEST_SCORE = Math.log(1e250);
const TREES = { root: "trees", column: "nodes", threshold: "nodes", gap: "nodes", child: "children", leaf: "leaves" };

Object.assign(SIZES, {
  parents: (f) => K * f.starts[f.columns.length],
  pairs: (f) => K * f.starts[f.columns.length] ** 2,
  scores: (f) => f.groups * (1 + f.centre.length + f.starts[f.columns.length]),
  trees: (f) => f.counts[0],
  nodes: (f) => f.counts[1],
  children: (f) => 2 * f.counts[1],
  leaves: (f) => f.counts[2],
});

Object.assign(KINDS, {
  // categories that depend on one of them, each in turn: log of the mean over columns j of p(x_j | k) prod p(x_i | k, x_j)
  parents: {
    fields: { level: "parents", pairs: "pairs" },
    prepare(f) {
      const L = f.starts[f.columns.length];
      f.column = f.columns.flatMap((_, i) => Array(f.sizes[i]).fill(i));
      f.tables = f.strengths.map((strength) => Float64Array.from(f.pairs, (count, place) => {
        const [k, a, b] = [Math.floor(place / L / L), Math.floor(place / L) % L, place % L];
        const j = f.column[b];
        if (j === f.column[a]) return 0;
        let seen = 0; // rows of the class at the level of the parent that have the child
        for (let c = f.starts[j]; c < f.starts[j + 1]; c++) seen += f.pairs[(k * L + a) * L + c];
        return Math.log((count + strength * f.level[k * L + b]) / (seen + strength));
      }));
    },
    all(f, z) {
      const [seen, L, F] = [entriesOf(f, z), f.starts[f.columns.length], f.columns.length];
      const levels = seen.map((i) => f.starts[i] + z[f.columns[i]]);
      const parents = f.column.flatMap((i, a) => (Number.isNaN(z[f.columns[i]]) || levels.includes(a) ? [a] : []));
      return Float64Array.from({ length: f.strengths.length * K }, (_, g) => {
        const [table, k] = [f.tables[Math.floor(g / K)], g % K];
        const under = (a) => levels.reduce((sum, b) => sum + table[(k * L + a) * L + b], Math.log(f.level[k * L + a]));
        return seen.length ? logSum(parents.map(under)) - Math.log(F) : 0;
      });
    },
    values: (f, i) => f.sizes[i],
  },
  // softmax regressions on standardised numbers, 0 where unknown, and one of 0 and 1 for each category
  softmax: {
    fields: { weights: "scores" },
    all(f, z) {
      const [seen, width] = [entriesOf(f, z), f.weights.length / f.groups];
      if (!seen.length) return new Float64Array(f.groups);
      const numbers = f.centre.length;
      const score = Float64Array.from({ length: f.groups }, (_, g) => f.weights[g * width]);
      let terms = seen.filter((i) => i < numbers).map((i) => {
        const [v, e] = [z[f.columns[i]], f.columns[i]];
        const size = Math.log(Math.abs(v)) + (z.beyond[e] || 0) - Math.log(f.scale[i]);
        return { i, value: (v - f.centre[i]) / f.scale[i], size: score.some((_, g) => f.weights[g * width + 1 + i]) ? size : -Infinity, sign: Math.sign(v) };
      });
      if (terms.some(({ value, size }) => Math.max(Math.log(Math.abs(value)), size) > LOG_FAR)) {
        const beyond = Math.max(0, ...terms.map(({ size }) => size - FARTHEST_SCORE)); // one class has all
        terms = terms.map(({ i, size, sign }) => ({ i, value: sign * Math.exp(size - beyond) }));
      }
      for (const { i, value } of terms) for (let g = 0; g < f.groups; g++) score[g] += f.weights[g * width + 1 + i] * value;
      for (const i of seen) {
        if (i < numbers) continue;
        const place = 1 + numbers + f.starts[i] + z[f.columns[i]];
        for (let g = 0; g < f.groups; g++) score[g] += f.weights[g * width + place];
      }
      return classScores(f, score);
    },
  },
  // trees whose leaves hold shares of the classes
  forest: {
    fields: TREES,
    all(f, z) {
      if (!entriesOf(f, z).length) return new Float64Array(K);
      const votes = new Float64Array(K).fill(0.5);
      for (const root of f.root) {
        const leaf = leafOf(f, z, root);
        for (let k = 0; k < K; k++) votes[k] += f.leaf[leaf * K + k];
      }
      return votes.map((v, k) => Math.log(v / (f.root.length + 0.5 * K)) - f.log_prior[k]);
    },
  },
  // trees that add to the score of one class each
  boosted: {
    fields: { ...TREES, score: "trees" },
    all(f, z) {
      if (!entriesOf(f, z).length) return new Float64Array(K);
      const score = Float64Array.from(f.start);
      f.root.forEach((root, t) => (score[f.score[t]] += f.leaf[leafOf(f, z, root)]));
      return classScores(f, score);
    },
  },
});

/** Return log p(class) less the log frequencies of the classes, from scores, one alternative after the other. */
function classScores(f, score) {
  return score.map((v, g) => {
    const first = g - (g % K);
    return v - logSum(score.subarray(first, first + K)) - f.log_prior[g % K];
  });
}

/** Return the leaf that a row reaches below a node: a value up to the threshold goes left, a gap as the node says. */
function leafOf(f, z, node) {
  let place = node;
  while (place >= 0) {
    const v = z[f.columns[f.column[place]]];
    place = f.child[2 * place + (Number.isNaN(v) ? f.gap[place] : Number(v > f.threshold[place]))];
  }
  return -1 - place;
}

/** Work out location, scale and degrees of freedom of groups under priors of several strengths, from their moments. */
function predictives(f) {
  const view = model.views[f.view];
  const [G, D, matrix] = [view.n.length, f.columns.length, f.kind === "vector"];
  const size = view.width; // of a lower triangle, or of a diagonal
  const [mean, S, V] = [flat(view.mean, G * D), flat(view.scatter, G * size), flat(view.covariance, size)];
  const place = (r, c) => (size === D ? r : (r * (r + 1)) / 2 + c);
  const total = view.n.reduce((a, b) => a + b);
  const found = { location: [], scale: [], dof: [], kappa: [] };
  for (const [rho, kappa, shrinkage] of f.strengths) {
    const delta = (g, r) => (view.n[g] ? mean[g * D + r] - view.centre[r] : 0);
    const squares = (g, r, c) => S[g * size + place(r, c)] + ((kappa * view.n[g]) / (kappa + view.n[g])) * delta(g, r) * delta(g, c);
    const about = (g, r, c) => (f.shared ? view.n.reduce((sum, _, o) => sum + squares(o, r, c), 0) : squares(g, r, c));
    for (let g = 0; g < G; g++) {
      const [rows, dof] = [kappa + view.n[g], rho + 2 + (f.shared ? total : view.n[g])];
      for (let i = 0; i < (matrix ? 1 : D); i++) {
        found.dof.push(dof);
        found.kappa.push(rows);
      }
      for (let r = 0; r < D; r++) {
        found.location.push(view.centre[r] + (view.n[g] / rows) * delta(g, r));
        for (let c = matrix ? 0 : r; c < (matrix ? D : r + 1); c++) {
          const [low, high] = [Math.min(r, c), Math.max(r, c)];
          const prior = rho * V[place(high, low)] * (r === c ? 1 : 1 - shrinkage);
          const scale = ((prior + about(g, high, low)) * (1 + 1 / rows)) / dof;
          found.scale.push(matrix ? scale : Math.sqrt(scale));
        }
      }
    }
  }
  const weight = view.n.map((n) => n + 1);
  const ofClass = (g) => weight.reduce((sum, w, o) => sum + (view.owner[o] === view.owner[g] ? w : 0), 0);
  f.cell = f.strengths.flatMap((_, a) => view.owner.map((k) => a * K + k));
  f.share = weight.map((w, g) => Math.log(w / ofClass(g)));
  Object.assign(f, found);
}

/** Return the log of the average of (q + least prior)/(1 + least) over members, sharpened, and under other shares. */
function averaged(about, shares) {
  const { weights, exponents, least, count } = about.mixture.members;
  const prior = Array.from(members.share.subarray(0, K));
  const [logs, sum, q] = [prior.map(Math.log), new Float64Array(K), new Float64Array(K)];
  for (let m = 0; m < count; m++) {
    if (!weights[m]) continue;
    underMember(about, m, q);
    let [top, total] = [-Infinity, 0];
    for (let k = 0; k < K; k++) top = Math.max(top, (q[k] = q[k] * exponents[m] + logs[k]));
    for (let k = 0; k < K; k++) total += q[k] = Math.exp(q[k] - top);
    const share = weights[m] / (1 + least[m]);
    for (let k = 0; k < K; k++) sum[k] += share * (q[k] / total + least[m] * prior[k]);
  }
  const asked = shares || model.priors;
  const found = prior.map((p, k) => asked[k] * (sum[k] / p) ** model.average.sharpening);
  const total = found.reduce((a, b) => a + b);
  return found.map((v) => Math.log(v / total));
}

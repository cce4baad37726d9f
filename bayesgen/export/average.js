// ---- the average ----------------------------------------------------------------------------------------------------
// Its members answer p(class | row) by tempered densities or scores; those with a density of rows make a mixture too.

const FARTHEST_SCORE = Math.log(1e250);
const TREES = { root: "trees", column: "nodes", threshold: "nodes", gap: "nodes", child: "children", leaf: "leaves" };

Object.assign(SIZES, {
  parents: (f) => K * f.starts[f.columns.length],
  pairs: (f) => K * f.starts[f.columns.length] ** 2,
  totals: (f) => K * f.columns.length,
  scores: (f) => f.groups * (1 + f.centre.length + f.starts[f.columns.length]),
  trees: (f) => f.counts[0],
  nodes: (f) => f.counts[1],
  children: (f) => 2 * f.counts[1],
  leaves: (f) => f.counts[2],
});

Object.assign(KINDS, {
  // categories that depend on one of them, each in turn: log of the mean over columns j of p(x_j | k) prod p(x_i | k, x_j)
  parents: {
    fields: { level: "parents", pairs: "pairs", total: "totals" },
    prepare(f) {
      const L = f.starts[f.columns.length];
      f.column = f.columns.flatMap((_, i) => Array(f.sizes[i]).fill(i));
      f.seen = f.pairs.map((_, place) => { // rows of the class at the level of the parent that have the child
        const [first, j] = [place - (place % L), f.column[place % L]];
        return f.pairs.subarray(first + f.starts[j], first + f.starts[j + 1]).reduce((a, b) => a + b);
      });
      const level = (place) => f.level[Math.floor(place / L / L) * L + (place % L)];
      const chance = (strength) => (n, place) => Math.log((n + strength * level(place)) / (f.seen[place] + strength));
      f.tables = f.strengths.map((strength) => f.pairs.map(chance(strength)));
    },
    all: (f, z) => underParents(f, z, f.strengths.length, f.level, (g, place) => f.tables[Math.floor(g / K)][place]),
    // A row asks a draw for its levels, and for one probability of each column under each parent, which is a Beta's.
    densitiesOfDraws(f, draws, random) {
      const [L, [strength], seed] = [f.column.length, f.strengths, random.uniform() * 2 ** 32];
      const copy = { mass: new Float64Array(draws * K * L), total: new Float64Array(draws * f.total.length) };
      drawnMasses({ mass: f.level, total: f.total }, copy, random, f.starts);
      return (z) => {
        const again = generator(seed); // the same for all rows
        return underParents(f, z, draws, copy.mass, (g, place) => {
          const count = f.pairs[place] + strength * copy.mass[g * L + (place % L)];
          const chance = again.gamma(count);
          return Math.log(Math.max(chance / (chance + again.gamma(f.seen[place] + strength - count) || 1), 1e-300));
        }, 1e6);
      };
    },
    values: (f, i) => f.sizes[i],
  },
  // softmax regressions on standardised numbers, 0 where unknown, and one of 0 and 1 for each category
  softmax: {
    fields: { weights: "scores" },
    all(f, z) {
      const [seen, width] = [entriesOf(f, z), f.weights.length / f.groups];
      const numbers = f.centre.length;
      const score = Float64Array.from({ length: f.groups }, (_, g) => f.weights[g * width]);
      let terms = seen.map((i) => {
        const [v, e] = [z[f.columns[i]], f.columns[i]];
        if (i >= numbers) return { at: 1 + numbers + f.starts[i] + v, value: 1 };
        const size = Math.log(Math.abs(v)) + (z.beyond[e] || 0) - Math.log(f.scale[i]);
        return { at: 1 + i, value: (v - f.centre[i]) / f.scale[i], size: score.some((_, g) => f.weights[g * width + 1 + i]) ? size : -Infinity, sign: Math.sign(v) };
      });
      if (terms.some(({ value, size = 0 }) => Math.max(Math.log(Math.abs(value)), size) > LOG_FAR)) {
        const beyond = Math.max(0, ...terms.map(({ size = 0 }) => size - FARTHEST_SCORE)); // one class has all
        terms = terms.map(({ at, size, sign, value }) => ({ at, value: sign === undefined ? value : sign * Math.exp(size - beyond) }));
      }
      for (const { at, value } of terms) for (let g = 0; g < f.groups; g++) score[g] += f.weights[g * width + at] * value;
      return classScores(f, score);
    },
  },
  // trees whose leaves hold shares of the classes
  forest: {
    fields: TREES,
    all(f, z) {
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
      const score = Float64Array.from(f.start);
      f.root.forEach((root, t) => (score[f.score[t]] += f.leaf[leafOf(f, z, root)]));
      return classScores(f, score);
    },
  },
});

/**
 * Return log p(x | group) of so many alternatives, from p(level) and log p(child | parent) by group and place in pairs. Of
 * these at most so many are asked for, but for 100 alternatives; others take turns.
 */
function underParents(f, z, alternatives, level, child, most = Infinity) {
  const [L, seen] = [f.column.length, entriesOf(f, z)];
  const levels = seen.map((i) => f.starts[i] + z[f.columns[i]]);
  const parents = f.column.flatMap((i, a) => (Number.isNaN(z[f.columns[i]]) || levels.includes(a) ? [a] : []));
  const count = Math.min(alternatives, Math.max(100, Math.ceil(most / (K * parents.length * levels.length))));
  const found = Float64Array.from({ length: count * K }, (_, g) => {
    const [first, row] = [(g * L) % level.length, (g % K) * L * L];
    const others = (a) => levels.filter((b) => f.column[b] !== f.column[a]);
    const under = (a) => others(a).reduce((sum, b) => sum + child(g, row + a * L + b), Math.log(level[first + a]));
    return logSum(parents.map(under)) - Math.log(f.columns.length);
  });
  return Float64Array.from({ length: alternatives * K }, (_, g) => found[g % found.length]);
}

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
    const about = (g, r, c) => (f.tied ? view.n.reduce((sum, _, o) => sum + squares(o, r, c), 0) : squares(g, r, c));
    for (let g = 0; g < G; g++) {
      const [rows, dof] = [kappa + view.n[g], rho + 2 + (f.tied ? total : view.n[g])];
      found.dof.push(...Array(matrix ? 1 : D).fill(dof));
      found.kappa.push(...Array(matrix ? 1 : D).fill(rows));
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
  Object.assign(f, found, { share: weight.map((w, g) => Math.log(w / ofClass(g))), worth: weight });
}

/** Return the log of the average of (q + least prior)/(1 + least) over members or draws, sharpened, and under other shares. */
function averaged(about, shares, first = 0, last = about.mixture.members.count) {
  const { weights, exponents, least, logShare, errors } = about.mixture.members;
  const prior = Array.from(members.share.subarray(0, K)), wrong = errors && about.x.some((v) => !Number.isNaN(v));
  const [sum, q] = [new Float64Array(K), new Float64Array(K)];
  for (let m = first; m < last; m++) {
    if (!weights[m]) continue;
    underMember(about, m, q);
    let [top, total] = [-Infinity, 0];
    for (let k = 0; wrong && k < K; k++) q[k] += errors[m * K + k];
    for (let k = 0; k < K; k++) top = Math.max(top, (q[k] = q[k] * exponents[m] + logShare[m * K + k]));
    for (let k = 0; k < K; k++) total += q[k] = Math.exp(q[k] - top);
    const share = weights[m] / (1 + least[m]);
    for (let k = 0; k < K; k++) sum[k] += share * (q[k] / total + least[m] * prior[k]);
  }
  const asked = shares || model.priors;
  const found = prior.map((p, k) => asked[k] * (sum[k] / p) ** model.average.sharpening);
  const total = found.reduce((a, b) => a + b);
  return found.map((v) => Math.log(v / total));
}

/** Throw if a number is so far out that only limits of densities are left, which are useless for a question. */
function refuseFar({ x, z }, question) {
  const far = model.derived.findIndex(({ density }, place) => density && z.beyond[WIDTH + place]);
  if (far >= 0) throw tooFar(x, model.derived[far].of, question);
}

// ---- draws of an average --------------------------------------------------------------------------------------------
// Each is of a member by its weight, at even steps, then of its exponent and its parameters. A member that has none to
// draw (its spread is a number) has errors of its scores.

/** Return an alternative of a factor as a factor. */
function alternativeOf(f, a) {
  const groups = f.groups / f.alternatives, { fields, prepare } = KINDS[f.kind];
  const one = { ...f, groups, alternatives: 1, cell: f.cell.slice(0, groups), strengths: f.strengths?.slice(a, a + 1) };
  for (const [field, size] of Object.entries(fields)) {
    const length = SIZES[size](one);
    if (f[field].length > length) one[field] = f[field].subarray(a * length, (a + 1) * length);
  }
  if (prepare) prepare(one);
  return one;
}

/** Draw the log shares of several groups in each class, which are a Dirichlet's. */
function drawnShares(f, { cell }, random) {
  const [gammas, sums] = [cell.map((_, g) => random.gamma(f.worth[g % f.groups])), new Float64Array(cell.length)];
  gammas.forEach((v, g) => (sums[cell[g]] += v));
  return gammas.map((v, g) => Math.log(v / sums[cell[g]]));
}

/** Return the mixture of draws whose shares of the classes are drawn. */
function drawnMembers(drawn, random) {
  const { weights, spread, exponents, looseness, least } = members, used = new Map();
  let upTo = 0.5; // draws of the members so far, and a half
  const chosen = [...weights].flatMap((w, m) => Array(-Math.floor(upTo) + Math.floor((upTo += w * drawn.count))).fill(m));
  const takes = chosen.map((m) => members.takes[m].map(([f, a]) => {
    if (!Number.isNaN(spread[m])) return [f, a];
    const name = `${f} ${a}`, found = used.get(name) ?? { f, a, place: factors.length + used.size, count: 0 };
    used.set(name, found);
    return [found.place, found.count++];
  }));
  const copies = [...used.values()].map(({ f, a, count }) => drawnFactor(alternativeOf(factors[f], a), count, random));
  return { factors: [...factors, ...copies], members: {
    ...drawn,
    takes,
    logShare: drawn.share.map(Math.log),
    weights: chosen.map(() => 1),
    least: chosen.map((m) => least[m]),
    exponents: chosen.map((m) => exponents[m] * Math.exp(looseness[m] * random.normal())),
    errors: chosen.flatMap((m) => Array.from({ length: K }, () => (spread[m] || 0) * random.normal())),
  } };
}

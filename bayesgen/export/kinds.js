// ---- kinds of density -----------------------------------------------------------------------------------------------
// A factor is the density of some entries z under groups, each of one class. A kind says
//   fields    its arrays, and how many numbers each has
//   density   log p(z | group g) of its entry i, where entries stand apart
//   whole     log p(z | group g) of all entries of a row, where they do not;  all  the same of all groups at once
//   line      location, spread and degrees of freedom of an unknown entry, where it is a number
//   values    how many values of an unknown entry are listed, where it is a count or a category
//   drawn     parameters under groups that are drawn from the posterior; or
//   densitiesOfDraws  the function of a row that returns log p(z | g) under such groups
//   prepare   what does not depend on rows;  check  whether entries fit each other
// Where parameters are known, the rows that they are worth (total, kappa, rate, dof) are infinite.

const SIZES = {
  group: (f) => f.groups,
  entry: (f) => f.groups * f.columns.length,
  matrix: (f) => f.groups * f.columns.length ** 2,
  level: (f) => f.groups * f.starts[f.columns.length],
};

const KINDS = {
  // Student's t, or a Gaussian where dof is infinite. Entries stand apart, or are joint: they share a variance, and with
  // it their tails.
  gaussian: {
    fields: { location: "entry", scale: "entry", dof: "entry", kappa: "entry" },
    prepare(f) {
      f.joint = f.joint && f.dof[0] < Infinity; // Gaussians of a known variance stand apart
      f.width = f.scale.map((s, c) => (f.dof[c] === Infinity ? s : s * Math.sqrt(f.dof[c])));
      f.level = f.location.map((_, c) => {
        if (f.dof[c] === Infinity) return -0.5 * LOG_2PI - Math.log(f.scale[c]);
        return (f.joint ? 0 : logGammaRatio(f.dof[c] / 2, 0.5)) - 0.5 * Math.log(Math.PI) - Math.log(f.width[c]);
      });
    },
    density(f, g, i, x, beyond) {
      const c = g * f.columns.length + i;
      const z = (x - f.location[c]) / f.width[c];
      if (f.dof[c] === Infinity) return f.level[c] - 0.5 * z * z;
      const square = Math.abs(z) < 1e150 ? Math.log1p(z * z) : log1pSquares([z]);
      return f.level[c] - (f.dof[c] + 1) * (0.5 * square + beyond); // beyond FAR, log(1 + z^2) is 2 log z
    },
    whole(f, g, x) {
      const [seen, first] = [entriesOf(f, x), g * f.columns.length];
      const [d, dof] = [seen.length, f.dof[first]];
      const level = seen.reduce((sum, i) => sum + f.level[first + i], logGammaRatio(dof / 2, d / 2));
      return level - 0.5 * (dof + d) * log1pSquares(seen.map((i) => (x[f.columns[i]] - f.location[first + i]) / f.width[first + i]));
    },
    line(f, g, i, x) {
      const c = g * f.columns.length + i;
      if (!f.joint) return { location: f.location[c], spread: f.scale[c], dof: f.dof[c] };
      const others = entriesOf(f, x);
      const z = others.map((o) => (x[f.columns[o]] - f.location[c - i + o]) / f.scale[c - i + o]);
      return conditional(f.location[c], f.scale[c], f.dof[c], z);
    },
    drawn(f, copy, random) {
      const [D, chis] = [f.columns.length, []];
      for (let g = 0; g < copy.groups; g++) {
        if (g % f.groups === 0) chis.length = 0;
        for (let i = 0; i < D; i++) {
          const c = (g % f.groups) * D + i;
          const mate = f.joint ? (f.tied ? 0 : g % f.groups) : f.tied ? i : c; // who shares a variance
          const nu = f.dof[c];
          if (chis[mate] === undefined) chis[mate] = nu === Infinity ? 1 : random.gamma(nu / 2) / (nu / 2);
          const share = f.kappa[c] === Infinity ? 0 : 1 / (f.kappa[c] + 1); // of the squared scale, for the mean
          copy.scale[g * D + i] = f.scale[c] * Math.sqrt((1 - share) / chis[mate]);
          const step = share ? f.scale[c] * Math.sqrt(share / chis[mate]) * random.normal() : 0;
          copy.location[g * D + i] = f.location[c] + step;
        }
      }
    },
  },
  // Student's t or Gaussian vectors, by their scale matrices
  vector: {
    fields: { location: "entry", scale: "matrix", dof: "group", kappa: "group" },
    prepare: (f) => (f.roots = new Map()),
    all(f, x) {
      const [seen, result] = [entriesOf(f, x), new Float64Array(f.groups)];
      const [d, roots, z] = [seen.length, rootsOf(f, seen), new Float64Array(seen.length)];
      const beyond = Math.max(0, ...seen.map((i) => x.beyond[f.columns[i]] || 0)); // all are drawn in by the farthest
      const near = beyond ? x.map((v, e) => v * Math.exp((x.beyond[e] || 0) - beyond)) : x;
      for (let g = 0; d && g < f.groups; g++) {
        const [nu, { root, level }] = [f.dof[g], roots(g)];
        away(f, g, seen, near, root, d, z);
        let square = 0;
        for (let r = 0; r < d; r++) square += z[r] * z[r];
        if (nu === Infinity) result[g] = Number.isNaN(square) ? -Infinity : level - 0.5 * square; // infinite less infinite
        else result[g] = level - 0.5 * (nu + d) * (square < Infinity ? Math.log1p(square / nu) : log1pSquares(z.map((v) => v / Math.sqrt(nu))));
        if (beyond) result[g] -= (nu + d) * beyond;
      }
      return result;
    },
    line(f, g, i, x) {
      const seen = entriesOf(f, x);
      const [d, { root }] = [seen.length + 1, rootsOf(f, [...seen, i])(g)];
      const z = away(f, g, seen, x, root, d);
      const location = z.reduce((sum, v, o) => sum + v * root[(d - 1) * d + o], f.location[g * f.columns.length + i]);
      return conditional(location, root[d * d - 1], f.dof[g], z);
    },
    // A row asks a draw for |A'z - u / sqrt(kappa)|^2 and the determinant of A alone, A Bartlett's factor of a Wishart
    // matrix, z whitened distances, u normal. The law of A is that of A in every basis: in one whose first directions
    // hold z of the groups that share A, few entries of A matter beside its diagonal.
    densitiesOfDraws(f, draws, random) {
      const [D, G, sets] = [f.columns.length, f.groups, f.tied ? 1 : f.groups];
      const some = (size, draw) => Float64Array.from({ length: size }, (_, place) => draw(place));
      const chi = some(draws * sets * D, (c) => Math.sqrt(2 * random.gamma((f.dof[Math.floor(c / D) % sets] + (c % D)) / 2)));
      const beside = some(draws * sets * (G / sets) ** 2, random.normal);
      const u = some(draws * G * D, random.normal);
      return (x) => {
        const [result, seen] = [new Float64Array(draws * G), entriesOf(f, x)];
        const d = seen.length;
        for (let set = 0; d && set < sets; set++) {
          const groups = Array.from({ length: G / sets }, (_, place) => set + place);
          const spread = groups.map((g) => Math.sqrt((f.dof[g] * f.kappa[g]) / (f.kappa[g] + 1)));
          const roots = groups.map(rootsOf(f, seen));
          const level = groups.map((_, o) => -d * (LOG_2PI / 2 + Math.log(spread[o])) - roots[o].logDet);
          const z = coordinates(groups.map((g, o) => away(f, g, seen, x, roots[o].root).map((v) => v / spread[o])));
          for (let m = 0; m < draws; m++) {
            const [first, aside] = [(m * sets + set) * D, (m * sets + set) * (G / sets) ** 2];
            let logs = 0;
            for (let r = 0; r < d; r++) logs += Math.log(chi[first + r]);
            groups.forEach((g, o) => {
              let square = 0;
              for (let i = 0; i < d; i++) {
                let v = -u[(m * G + g) * D + i] / Math.sqrt(f.kappa[g]);
                if (i < z[o].length) v += chi[first + d - 1 - i] * z[o][i];
                for (let t = i + 1; t < z[o].length; t++) v += beside[aside + (t * G) / sets + i] * z[o][t];
                square += v * v;
              }
              result[m * G + g] = Number.isNaN(square) ? -Infinity : level[o] + logs - square / 2;
            });
          }
        }
        return result;
      };
    },
  },
  // the values 0, 1, ..., size - 1 by their probabilities, of a Dirichlet of this total; or as many as sizes say
  list: {
    fields: { mass: "level", total: "entry" },
    prepare: (f) => (f.level = f.mass.map(Math.log)),
    density: (f, g, i, x) => f.level[g * f.starts[f.columns.length] + f.starts[i] + x],
    values: (f, i) => f.starts[i + 1] - f.starts[i],
    drawn: (f, copy, random) => drawnMasses(f, copy, random, f.starts),
  },
  // counts: Poisson, of a mean that is known as from so many rows (rate)
  count: {
    fields: { mean: "entry", rate: "entry" },
    density(f, g, i, x) {
      const [mean, b] = [f.mean[g * f.columns.length + i], f.rate[g * f.columns.length + i]];
      if (b === Infinity) return (x ? x * Math.log(mean) : 0) - mean - logGamma(x + 1);
      return logWays(mean * b, x) - mean * b * Math.log1p(1 / b) - x * Math.log1p(b);
    },
    values(f, i) {
      for (let size = 64; ; size *= 4) {
        const mass = new Float64Array(f.groups);
        for (let g = 0; g < f.groups; g++) for (let x = 0; x < size; x++) mass[g] += Math.exp(this.density(f, g, i, x));
        if (Math.min(...mass) > 1 - 1e-9 || size >= 65536) return size;
      }
    },
    drawn(f, copy, random) {
      copy.mean.forEach((_, c) => {
        const [mean, b] = [f.mean[c % f.mean.length], f.rate[c % f.mean.length]];
        copy.mean[c] = b === Infinity ? mean : random.gamma(mean * b) / b;
      });
    },
  },
  // heads in a number of tosses, one for each column; the mean of a head is known as from so many tosses (total)
  heads: {
    fields: { mean: "entry", total: "entry" },
    density(f, g, i, x) {
      const c = g * f.columns.length + i;
      return logHeads(f.mean[c], f.total[c], x, f.trials[i] - x);
    },
    values: (f, i) => f.trials[i] + 1,
    drawn: drawnMeans,
  },
  // heads, and tosses in a second column
  tosses: {
    fields: { mean: "group", total: "group" },
    check(f, x) {
      const [heads, tosses] = f.columns;
      if (Number.isNaN(x[heads])) return;
      if (Number.isNaN(x[tosses])) throw refusal(model.columns[tosses], "row 0 has heads but no number of tosses");
      if (x[heads] > x[tosses]) throw refusal(model.columns[heads], `value ${shown(x[heads])} in row 0 is more than the tosses`);
    },
    whole(f, g, x) {
      const [heads, tosses] = f.columns.map((j) => x[j]);
      return Number.isNaN(heads) ? 0 : logHeads(f.mean[g], f.total[g], heads, tosses - heads);
    },
    drawn: drawnMeans,
  },
  // a bag of words, given its length
  bag: {
    fields: { mass: "entry", total: "group" },
    check(f, x) {
      const gone = f.columns.filter((j) => Number.isNaN(x[j]));
      if (gone.length && gone.length < f.columns.length) {
        const cure = "a bag of words is missing as a whole; give 0 for a word not in it";
        throw refusal(model.columns[gone[0]], `row 0 is partly missing: ${cure}`);
      }
    },
    whole(f, g, x) {
      if (Number.isNaN(x[f.columns[0]])) return 0;
      const [total, length] = [f.total[g], f.columns.reduce((sum, j) => sum + x[j], 0)];
      const ways = total === Infinity ? -logGamma(length + 1) : logWays(total, length);
      return f.columns.reduce((sum, j, i) => {
        const mass = f.mass[g * f.columns.length + i];
        if (!x[j]) return sum;
        return sum + (total === Infinity ? x[j] * Math.log(mass) - logGamma(x[j] + 1) : logWays(mass * total, x[j]));
      }, -ways);
    },
    drawn: (f, copy, random) => drawnMasses(f, copy, random, [0, f.columns.length]),
  },
};

/** Return the places of the columns of a factor that a row has. */
function entriesOf(f, x) {
  const seen = [];
  for (let i = 0; i < f.columns.length; i++) if (!Number.isNaN(x[f.columns[i]])) seen.push(i);
  return seen;
}

/** Return the log probability of x heads and y tails, the mean of a head known as from so many tosses. */
function logHeads(mean, total, x, y) {
  if (total !== Infinity) return logWays(mean * total, x) + logWays((1 - mean) * total, y) - logWays(total, x + y);
  return (x ? x * Math.log(mean) : 0) + (y ? y * Math.log(1 - mean) : 0) + logWays(y + 1, x);
}

/** Draw the probabilities of each Dirichlet, whose values begin at these places among those of a group. */
function drawnMasses(f, copy, random, starts) {
  const count = starts.length - 1;
  const ends = (place) => [0, 1].map((end) => Math.floor(place / count) * starts[count] + starts[(place % count) + end]);
  copy.total.forEach((_, place) => {
    const c = place % f.total.length;
    copy.mass.set(dirichlet(f.mass.subarray(...ends(c)), f.total[c], random), ends(place)[0]);
  });
}

function drawnMeans(f, copy, random) {
  copy.mean.forEach((_, c) => {
    const mean = f.mean[c % f.mean.length];
    copy.mean[c] = dirichlet([mean, 1 - mean], f.total[c % f.mean.length], random)[0];
  });
}

/** Return log(1 + sum of squares), far from 0 by logarithms. */
function log1pSquares(z) {
  let [sum, size] = [0, 1];
  for (const v of z) sum += v * v;
  if (sum < Infinity) return Math.log1p(sum);
  for (const v of z) size = Math.max(size, Math.abs(v));
  if (size === Infinity) return size;
  return 2 * Math.log(size) + Math.log1p(z.reduce((s, v) => s + (v / size) ** 2, size ** -2 - 1));
}

/** Return the Student's t of an entry given others at the distance z, from its location and scale given these. */
function conditional(location, scale, dof, z) {
  if (dof === Infinity) return { location, spread: scale, dof };
  const square = z.reduce((sum, v) => sum + v * v, 0);
  return { location, spread: scale * Math.sqrt((dof + square) / (dof + z.length)), dof: dof + z.length };
}

/** Return the coordinates of vectors in a basis that they span themselves, one more with each vector. */
function coordinates(vectors) {
  const basis = [];
  return vectors.map((vector) => {
    const rest = [...vector];
    const found = basis.map((b) => {
      const along = b.reduce((sum, v, s) => sum + v * rest[s], 0);
      b.forEach((v, s) => (rest[s] -= along * v));
      return along;
    });
    const size = Math.sqrt(rest.reduce((sum, v) => sum + v * v, 0));
    if (basis.length < rest.length && size > 0) found[basis.push(rest.map((v) => v / size)) - 1] = size;
    return found;
  });
}

/**
 * Return the function from a group to Cholesky's factor of the scale matrix of some entries, row by row on one axis, with
 * the log of its determinant and the level of the density; kept for the next row.
 */
function rootsOf(f, seen) {
  const [D, d, name] = [f.columns.length, seen.length, seen.join()];
  if (!f.roots.has(name)) {
    if (f.roots.size * f.groups * d ** 2 > 4e6) f.roots.clear();
    f.roots.set(name, []);
  }
  const roots = f.roots.get(name);
  return (g) => {
    if (roots[g]) return roots[g];
    const [root, nu] = [new Float64Array(d * d), f.dof[g]];
    let logDet = 0;
    for (let r = 0; r < d; r++) {
      for (let c = 0; c <= r; c++) {
        let v = f.scale[(g * D + seen[r]) * D + seen[c]];
        for (let s = 0; s < c; s++) v -= root[r * d + s] * root[c * d + s];
        root[r * d + c] = c === r ? Math.sqrt(v) : v / root[c * d + c];
      }
      logDet += Math.log(root[r * d + r]);
    }
    const level = nu === Infinity ? -0.5 * d * LOG_2PI : logGammaRatio(nu / 2, d / 2) - 0.5 * d * Math.log(Math.PI * nu);
    return (roots[g] = { root, logDet, level: level - logDet });
  };
}

/** Return the whitened distance of entries from their location, by a factor of d rows or more; written over z. */
function away(f, g, seen, x, root, d = seen.length, z = new Float64Array(seen.length)) {
  const first = g * f.columns.length;
  for (let r = 0; r < seen.length; r++) {
    let v = x[f.columns[seen[r]]] - f.location[first + seen[r]];
    for (let s = 0; s < r; s++) v -= root[r * d + s] * z[s];
    z[r] = v / root[r * d + r];
  }
  return z;
}

// ---- rows -----------------------------------------------------------------------------------------------------------
// A row is an object by column name; undefined, null, NaN and "" are unknown. Within, it is an array of numbers, a
// category as its place among the categories of its column, and NaN where unknown.

const K = model.classes.length;
const LOG_2PI = Math.log(2 * Math.PI);

/** @returns {Error} an error that knows its column */
function fault(column, text) {
  return Object.assign(new Error(text), { column });
}

/** Write a value as Python does: text in quotes, a number by at most six digits. */
function shown(value) {
  if (typeof value === "string") return value.includes("'") && !value.includes('"') ? `"${value}"` : `'${value}'`;
  if (typeof value === "boolean") return value ? "True" : "False";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  const [digits, power] = value.toExponential(5).split("e");
  if (Math.abs(power) < 5 || power === "+5") return String(Number(value.toPrecision(6)));
  return `${Number(digits)}e${power[0]}${power.slice(1).padStart(2, "0")}`;
}

const isUnknown = (value) => value === undefined || value === null || Number.isNaN(value);
const key = (label) => (typeof label === "boolean" ? Number(label) : label);

for (const column of model.columns) {
  if (column.categories) column.place = new Map(column.categories.map((label, code) => [key(label), code]));
}

/** Return the number that stands for a value of a column, or throw. */
function entry(column, value, remarks) {
  if (isUnknown(value)) return NaN;
  if (column.place) {
    const code = column.place.get(key(value));
    if (code !== undefined) return code;
    if (value === "") return NaN;
    if (column.kind === "category") {
      if (model.unseen === "error") {
        const text = `${shown(value)} in row 0 is not one of the categories ${column.words}`;
        throw fault(column.name, `column ${shown(column.name)}: ${text}`);
      }
      remarks.push(
        "1 value taken as missing, of categories that were not there at fit: " +
          `column ${shown(column.name)}: [${shown(value)}] in 1 row. unseen='error' refuses them`,
      );
      return NaN;
    }
  }
  if (value === "") return NaN;
  if (column.kind === "date" && typeof value === "string") {
    const days = /^\d{4}-\d\d-\d\d$/.test(value) ? Date.parse(`${value}T00:00:00Z`) / 86400000 : NaN;
    if (Number.isNaN(days)) throw fault(column.name, `column ${shown(column.name)}: ${shown(value)} is not a date`);
    return days;
  }
  if (typeof value !== "number" && typeof value !== "boolean") {
    const text = `column ${shown(column.name)} holds ${shown(String(value))}, which is not a number`;
    throw fault(column.name, `${text}; convert it or drop it, or take naive Bayes and declare it categorical`);
  }
  const x = Number(value);
  const refuse = (words) => fault(column.name, `column ${shown(column.name)}: value ${shown(x)} in row 0 ${words}`);
  if (!Number.isFinite(x)) throw refuse(column.kind === "bool" ? column.words : model.infinite);
  if (column.kind === "bool") throw refuse(column.words);
  if (column.kind === "count" && !(x >= 0 && Number.isInteger(x))) throw refuse(column.words);
  if (x > column.most) throw refuse(column.words_most);
  if (x <= column.above) throw refuse(column.words);
  return x;
}

/** Return a row as numbers. @param {Object<string, *>} row @param {string[]} [remarks] */
function read(row, remarks = []) {
  const has = (name) => Object.prototype.hasOwnProperty.call(row, name);
  const x = model.columns.map((column) => (has(column.name) ? entry(column, row[column.name], remarks) : NaN));
  for (const f of factors) if (KINDS[f.kind].check) KINDS[f.kind].check(f, x);
  return x;
}

/** Tell what of a row is taken otherwise than it was given. @returns {string[]} sentences */
function remarks(row) {
  const found = [];
  read(row, found);
  return found;
}

// ---- numbers --------------------------------------------------------------------------------------------------------

/** Return log(sum(exp(values))). */
function logSum(values) {
  let top = -Infinity;
  for (const v of values) if (v > top) top = v;
  if (!Number.isFinite(top)) return top;
  let sum = 0;
  for (const v of values) sum += Math.exp(v - top);
  return Math.log(sum) + top;
}

/** Return S(z) of Stirling's series, z >= 10. */
function stirlingTail(z) {
  const w = 1 / z;
  const s = w * w;
  return w * (1 / 12 + s * (-1 / 360 + s * (1 / 1260 + s * (-1 / 1680 + s * (1 / 1188 - (s * 691) / 360360)))));
}

function logGamma(z) {
  let product = 1;
  for (; z < 10; z += 1) product *= z;
  return (z - 0.5) * Math.log(z) - z + LOG_2PI / 2 + stirlingTail(z) - Math.log(product);
}

/** Return log Gamma(a + d) - log Gamma(a), d >= 0, without loss of digits however large a or d. */
function logGammaRatio(a, d) {
  if (a < 10) return logGamma(a + d) - logGamma(a);
  return (a - 0.5) * Math.log1p(d / a) + d * (Math.log(a + d) - 1) + stirlingTail(a + d) - stirlingTail(a);
}

/** Return the bytes of a text in base 64. */
function bytesOf(text) {
  const signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const value = new Map([...signs].map((sign, place) => [sign, place]));
  const bytes = new Uint8Array((text.length / 4) * 3);
  for (let i = 0, j = 0; i < text.length; i += 4, j += 3) {
    let bits = 0;
    for (let s = 0; s < 4; s++) bits = (bits << 6) | (value.get(text[i + s]) || 0);
    bytes.set([bits >> 16, (bits >> 8) & 255, bits & 255], j);
  }
  return bytes;
}

/** Return numbers that are written as one number, as nested lists, or packed, on one axis. */
function flat(written, size) {
  if (typeof written === "number") return new Float64Array(size).fill(written);
  if (typeof written !== "string") return Float64Array.from(written.flat(Infinity));
  return new Float64Array(bytesOf(written).buffer, 0, size);
}

/** Return a source of random numbers: uniform, standard normal, gamma. */
function generator(seed) {
  let state = seed >>> 0;
  const bits = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
  const uniform = () => (bits() + (bits() >>> 11) / 2097152 + 2 ** -22) / 4294967296;
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  const gamma = (shape) => {
    if (shape < 1) return gamma(shape + 1) * uniform() ** (1 / shape); // Marsaglia and Tsang 2000
    const d = shape - 1 / 3;
    for (;;) {
      const x = normal();
      const v = (1 + x / Math.sqrt(9 * d)) ** 3;
      if (v > 0 && Math.log(uniform()) < 0.5 * x * x + d * (1 - v + Math.log(v))) return d * v;
    }
  };
  return { uniform, normal, gamma };
}

// ---- kinds of density -----------------------------------------------------------------------------------------------
// A factor is the density of some columns under groups, each of one class. A kind says
//   fields    its arrays, and how many numbers each has
//   density   log p(x | group g) of an entry x of its column i, where columns stand apart
//   whole     log p(x | group g) of all entries of a row, where they do not
//   line      location, spread and degrees of freedom of an unknown entry, where it is a number
//   values    how many values of an unknown entry are listed, where it is a count or a category
//   drawn     parameters under groups that are drawn from the posterior
//   prepare   what does not depend on rows;  check  whether entries fit each other
// Where parameters are known, the rows that they are worth (total, kappa, rate, dof) are infinite.

const SIZES = {
  group: (f) => f.groups,
  entry: (f) => f.groups * f.columns.length,
  matrix: (f) => f.groups * f.columns.length ** 2,
  level: (f) => f.groups * f.columns.length * f.size,
};

const KINDS = {
  // Student's t, or a Gaussian where dof is infinite; of log(x + shift) where there is a shift. Columns stand apart, or
  // are joint: they share a variance, and with it their tails.
  gaussian: {
    fields: { location: "entry", scale: "entry", dof: "entry", kappa: "entry" },
    prepare(f) {
      f.width = f.scale.map((s, c) => (f.dof[c] === Infinity ? s : s * Math.sqrt(f.dof[c])));
      f.level = f.location.map((_, c) => {
        if (f.dof[c] === Infinity) return -0.5 * LOG_2PI - Math.log(f.scale[c]);
        return (f.joint ? 0 : logGammaRatio(f.dof[c] / 2, 0.5)) - 0.5 * Math.log(Math.PI) - Math.log(f.width[c]);
      });
    },
    forward: (f, i, x) => (f.shift === undefined ? x : f.shift === 1 ? Math.log1p(x) : Math.log(x + f.shift)),
    density(f, g, i, x) {
      const c = g * f.columns.length + i;
      const z = (x - f.location[c]) / f.width[c];
      if (f.dof[c] === Infinity) return f.level[c] - 0.5 * z * z;
      return f.level[c] - 0.5 * (f.dof[c] + 1) * log1pSquares([z]);
    },
    whole(f, g, x) {
      const [seen, first] = [entriesOf(f, x), g * f.columns.length];
      const level = seen.reduce((sum, i) => sum + f.level[first + i], 0);
      const z = seen.map((i) => (x[f.columns[i]] - f.location[first + i]) / f.width[first + i]);
      return level + tail(f.dof[first], z);
    },
    line(f, g, i, x) {
      const c = g * f.columns.length + i;
      if (!f.joint || f.dof[c] === Infinity) return { location: f.location[c], spread: f.scale[c], dof: f.dof[c] };
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
    whole: (f, g, x) => {
      const [seen, nu] = [entriesOf(f, x), f.dof[g]];
      if (!seen.length) return 0;
      const { root, logDet } = rootOf(f, g, seen);
      const z = away(f, g, seen, x, root);
      const d = seen.length;
      if (nu === Infinity) return -0.5 * d * LOG_2PI - logDet + tail(nu, z);
      return -0.5 * d * Math.log(Math.PI * nu) - logDet + tail(nu, z.map((v) => v / Math.sqrt(nu)));
    },
    line(f, g, i, x) {
      const seen = entriesOf(f, x);
      const { root } = rootOf(f, g, [...seen, i]);
      const [z, last] = [away(f, g, seen, x, root), root[seen.length]];
      const location = z.reduce((sum, v, o) => sum + v * last[o], f.location[g * f.columns.length + i]);
      return conditional(location, last[seen.length], f.dof[g], z);
    },
    drawn(f, copy, random) {
      const D = f.columns.length;
      let turn = null; // of Bartlett's decomposition: the inverse of a factor of a Wishart matrix
      for (let g = 0; g < copy.groups; g++) {
        const from = g % f.groups;
        const share = 1 / (f.kappa[from] + 1);
        const { root } = rootOf(f, from, f.columns.map((_, i) => i));
        if (from === 0 || !f.tied) {
          turn = Array.from({ length: D }, (_, r) => Array.from({ length: r }, () => random.normal()));
          turn.forEach((row, r) => row.push(Math.sqrt(2 * random.gamma((f.dof[from] + r) / 2))));
          turn = inverse(turn);
        }
        const spread = Math.sqrt(f.dof[from] * (1 - share));
        const factor = root.map((row, r) => row.map((_, c) => spread * dot(r - c + 1, (s) => row[c + s] * turn[c + s][c])));
        const noise = factor.map(() => random.normal());
        for (let r = 0; r < D; r++) {
          const move = Math.sqrt(share / (1 - share)) * dot(r + 1, (s) => factor[r][s] * noise[s]);
          copy.location[g * D + r] = f.location[from * D + r] + move;
          for (let c = 0; c < D; c++) {
            copy.scale[(g * D + r) * D + c] = dot(Math.min(r, c) + 1, (s) => factor[r][s] * factor[c][s]);
          }
        }
      }
    },
  },
  // the values 0, 1, ..., size - 1 by their probabilities, of a Dirichlet of this total
  list: {
    fields: { mass: "level", total: "entry" },
    prepare: (f) => (f.level = f.mass.map(Math.log)),
    density: (f, g, i, x) => f.level[(g * f.columns.length + i) * f.size + x],
    values: (f) => f.size,
    drawn(f, copy, random) {
      for (let row = 0; row < copy.total.length; row++) {
        const c = row % f.total.length;
        copy.mass.set(dirichlet(f.mass.subarray(c * f.size, (c + 1) * f.size), f.total[c], random), row * f.size);
      }
    },
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
    drawn: (f, copy, random) => drawnMeans(f, copy, random),
  },
  // heads, and tosses in a second column
  tosses: {
    fields: { mean: "group", total: "group" },
    check(f, x) {
      const [heads, tosses] = f.columns;
      if (Number.isNaN(x[heads])) return;
      if (Number.isNaN(x[tosses])) throw refusal(tosses, "row 0 has heads but no number of tosses");
      if (x[heads] > x[tosses]) throw refusal(heads, `value ${shown(x[heads])} in row 0 is more than the tosses`);
    },
    whole(f, g, x) {
      const [heads, tosses] = f.columns.map((j) => x[j]);
      return Number.isNaN(heads) ? 0 : logHeads(f.mean[g], f.total[g], heads, tosses - heads);
    },
    drawn: (f, copy, random) => drawnMeans(f, copy, random),
  },
  // a bag of words, given its length
  bag: {
    fields: { mass: "entry", total: "group" },
    check(f, x) {
      const gone = f.columns.filter((j) => Number.isNaN(x[j]));
      if (gone.length && gone.length < f.columns.length) {
        const cure = "a bag of words is missing as a whole; give 0 for a word not in it";
        throw refusal(gone[0], `row 0 is partly missing: ${cure}`);
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
    drawn(f, copy, random) {
      const D = f.columns.length;
      for (let g = 0; g < copy.groups; g++) {
        const from = g % f.groups;
        copy.mass.set(dirichlet(f.mass.subarray(from * D, (from + 1) * D), f.total[from], random), g * D);
      }
    },
  },
};

const refusal = (j, words) => fault(model.columns[j].name, `column ${shown(model.columns[j].name)}: ${words}`);

/** Return the places of the columns of a factor that a row has. */
function entriesOf(f, x) {
  const seen = [];
  for (let i = 0; i < f.columns.length; i++) if (!Number.isNaN(x[f.columns[i]])) seen.push(i);
  return seen;
}

/** Return log Gamma(a + x)/(Gamma(a) x!). */
function logWays(a, x) {
  const [low, high] = a < x + 1 ? [a, x + 1] : [x + 1, a];
  return logGammaRatio(high, low) - logGamma(low) - Math.log(a + x);
}

/** Return the log probability of x heads and y tails, the mean of a head known as from so many tosses. */
function logHeads(mean, total, x, y) {
  if (total !== Infinity) return logWays(mean * total, x) + logWays((1 - mean) * total, y) - logWays(total, x + y);
  return (x ? x * Math.log(mean) : 0) + (y ? y * Math.log(1 - mean) : 0) + logWays(y + 1, x);
}

function drawnMeans(f, copy, random) {
  copy.mean.forEach((_, c) => {
    const mean = f.mean[c % f.mean.length];
    copy.mean[c] = dirichlet([mean, 1 - mean], f.total[c % f.mean.length], random)[0];
  });
}

/** Draw probabilities of a Dirichlet of this mean and total. */
function dirichlet(mean, total, random) {
  if (total === Infinity) return mean;
  const gammas = mean.map((share) => random.gamma(share * total));
  const sum = gammas.reduce((a, b) => a + b);
  return sum > 0 ? gammas.map((v) => v / sum) : mean;
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

/** Return what the distance z of d entries takes from the log density, with the gammas of Student's t. */
function tail(dof, z) {
  if (dof === Infinity) {
    const square = z.reduce((sum, v) => sum + v * v, 0);
    return Number.isNaN(square) ? -Infinity : -0.5 * square; // beyond 1e150 spreads, infinite less infinite
  }
  return logGammaRatio(dof / 2, z.length / 2) - 0.5 * (dof + z.length) * log1pSquares(z);
}

/** Return the Student's t of an entry given others at the distance z, from its location and scale given these. */
function conditional(location, scale, dof, z) {
  if (dof === Infinity) return { location, spread: scale, dof };
  const square = z.reduce((sum, v) => sum + v * v, 0);
  return { location, spread: scale * Math.sqrt((dof + square) / (dof + z.length)), dof: dof + z.length };
}

const dot = (count, term) => {
  let sum = 0;
  for (let s = 0; s < count; s++) sum += term(s);
  return sum;
};

/** Return the inverse of a lower triangle, given by its rows. */
function inverse(rows) {
  const result = [];
  rows.forEach((row, r) => {
    result.push(row.map((_, c) => (c === r ? 1 / row[r] : -dot(r - c, (s) => row[c + s] * result[c + s][c]) / row[r])));
  });
  return result;
}

/** Return Cholesky's factor of the scale matrix of some columns under a group, by rows; kept for the next row. */
function rootOf(f, g, seen) {
  const key = seen.join();
  if (!f.roots.has(key)) {
    if (f.roots.size * f.groups * seen.length ** 2 > 1e6) f.roots.clear();
    f.roots.set(key, new Array(f.groups));
  }
  const roots = f.roots.get(key);
  if (!roots[g]) {
    const [D, root] = [f.columns.length, []];
    let logDet = 0;
    for (const [r, i] of seen.entries()) {
      const row = [];
      for (let c = 0; c <= r; c++) {
        const left = f.scale[(g * D + i) * D + seen[c]] - dot(c, (s) => row[s] * (c === r ? row[s] : root[c][s]));
        row.push(c === r ? Math.sqrt(left) : left / root[c][c]);
      }
      logDet += Math.log(row[r]);
      root.push(row);
    }
    roots[g] = { root, logDet };
  }
  return roots[g];
}

/** Return the whitened distance of entries from their location. */
function away(f, g, seen, x, root) {
  const z = [];
  seen.forEach((i, r) => {
    const distance = x[f.columns[i]] - f.location[g * f.columns.length + i];
    z.push((distance - dot(r, (s) => root[r][s] * z[s])) / root[r][r]);
  });
  return z;
}

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

// ---- answers --------------------------------------------------------------------------------------------------------

/** Return the log probability of each class. @param {Object<string, *>} row @returns {number[]} */
function predictLogProba(row, { priors } = {}) {
  return logProba(read(row), checked(priors));
}

/** Return the probability of each class, unknown entries integrated out. @returns {number[]} */
function predictProba(row, options) {
  const proba = predictLogProba(row, options).map(Math.exp);
  const sum = proba.reduce((a, b) => a + b);
  return proba.map((p) => p / sum);
}

let posterior = null; // draws of the parameters, kept for the next row

/** Return a mixture whose members are draws of the parameters. */
function drawnMixture(draws, seed) {
  if (model.kind === "draws") return { factors, members };
  if (posterior && posterior.draws === draws && posterior.seed === seed) return posterior;
  const random = generator(seed);
  const share = new Float64Array(draws * K);
  for (let s = 0; s < draws; s++) share.set(dirichlet(members.share, model.members.total, random), s * K);
  const copies = factors.map((f) => {
    const { fields, drawn, prepare } = KINDS[f.kind];
    const copy = { ...f, groups: f.groups * draws, alternatives: draws };
    copy.cell = Array.from({ length: copy.groups }, (_, g) => g);
    for (const [field, size] of Object.entries(fields)) copy[field] = new Float64Array(SIZES[size](copy)).fill(Infinity);
    drawn(f, copy, random);
    if (prepare) prepare(copy);
    return copy;
  });
  const drawn = { log: new Float64Array(draws), count: draws, share, choice: (m) => m };
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
function predictProbaInterval(row, { priors, level = 0.9, draws = 1000, seed = 1 } = {}) {
  const [x, shares] = [read(row), checked(priors)];
  if (!model.interval) return null;
  const mixture = drawnMixture(draws, seed);
  const { joint } = given(x, shares, mixture);
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
  const [x, shares] = [read(row), checked(priors)];
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
  return model.columns.map((column, j) => ({
    column: column.name,
    value: Number.isNaN(x[j]) ? null : row[column.name],
    contribution: (forwards.get(j) + backwards.get(j)) / 2,
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
    const drawn = new Float32Array(bytesOf(model.drawn).buffer, 0, model.drawn_rows * x.length);
    const rows = Array.from({ length: model.drawn_rows }, (_, r) => x.map((_, j) => (seen[j] ? drawn[r * x.length + j] : NaN)));
    ranked = { pattern, density: rows.map((one) => logSum(overMembers(given(one).joint))) };
  }
  const mine = logSum(overMembers(given(x).joint));
  const width = 1e-9 * (1 + (Number.isFinite(mine) ? Math.abs(mine) : 0)); // of what is equal but for rounding
  const below = ranked.density.filter((v) => v < mine - width).length;
  const equal = ranked.density.filter((v) => v <= mine + width).length - below;
  return (below + 0.5 * (equal + 1)) / (ranked.density.length + 1);
}

export { model, predictProba, predictLogProba, predictProbaInterval, explain, nextMeasurement, nextMeasurements, typicality, decide, remarks };

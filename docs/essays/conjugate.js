// Conjugate updates in closed form, as of bayesgen.models; `numbers` of bayesgen/export/numbers.js stand above this text.

// ---- the coin: Beta(a, b), heads and tails --------------------------------------------------------------------------

const coin = {
  posterior: ({ a, b }, heads, tails) => ({ a: a + heads, b: b + tails }),

  /** The three answers to P(heads) as [numerator, denominator]; null where there is none. */
  answers({ a, b }, heads, tails) {
    const [A, B, tosses] = [a + heads, b + tails, heads + tails];
    return {
      ml: tosses > 0 ? [heads, tosses] : null,
      map: A >= 1 && B >= 1 && A + B > 2 ? [A - 1, A + B - 2] : null, // flat, or rising to both ends
      predictive: [A, A + B],
    };
  },

  /** log p(theta) under Beta(a, b), 0 < theta < 1. */
  logDensity: ({ a, b }, theta) =>
    logGamma(a + b) - logGamma(a) - logGamma(b) + (a - 1) * Math.log(theta) + (b - 1) * Math.log1p(-theta),

  /** P(theta <= x): the continued fraction of the incomplete beta function, by Lentz (DLMF 8.17.22). */
  distribution({ a, b }, x) {
    if (x > (a + 1) / (a + b + 2)) return 1 - coin.distribution({ a: b, b: a }, 1 - x);
    let [c, d] = [1, 1 / (1 - ((a + b) * x) / (a + 1))];
    let fraction = d;
    for (let m = 1; m < 500; m++) {
      for (const term of [
        (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m)),
        (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1)),
      ]) {
        d = 1 / (1 + term * d);
        c = 1 + term / c;
        fraction *= c * d;
      }
      if (Math.abs(c * d - 1) < 1e-15) break;
    }
    return (Math.exp(coin.logDensity({ a, b }, x)) * x * (1 - x) * fraction) / a;
  },

  /** A draw of theta. */
  draw: ({ a, b }, random) => dirichlet([a / (a + b), b / (a + b)], a + b, random)[0],

  /** The theta below which this share of the probability lies, by bisection. */
  quantile(beta, share) {
    let [low, high] = [0, 1];
    for (let step = 0; step < 60; step++) {
      const middle = (low + high) / 2;
      if (coin.distribution(beta, middle) < share) low = middle;
      else high = middle;
    }
    return (low + high) / 2;
  },
};

// ---- words that are present or not: naive Bayes of coins -------------------------------------------------------------
// counts: {mails: [ham, spam], words: {word: [in ham, in spam]}}. A mail has for each word true, false, or null: a gap.

const spam = {
  /** P(word present or not | class), ham and spam: the predictive under Beta(a, a); maximum likelihood where a is 0. */
  likelihood: ({ mails, words }, word, present, a) =>
    words[word].map((count, k) => ((present ? count : mails[k] - count) + a) / (mails[k] + 2 * a)),

  /** Return what the prior and each word add to the log odds of spam. NaN is 0/0: the word was seen in no class, or always. */
  explain(counts, mail, a, prior) {
    const added = {};
    for (const [word, present] of Object.entries(mail)) {
      if (present === null) continue; // integrated out: its two likelihoods sum to 1 in each class
      const [ham, spam_] = spam.likelihood(counts, word, present, a);
      added[word] = Math.log(spam_) - Math.log(ham);
    }
    const start = Math.log(prior) - Math.log1p(-prior);
    return { prior: start, added, total: start + sum(Object.values(added)) };
  },

  probability: (logOdds) => 1 / (1 + Math.exp(-logOdds)),

  /** Return the P(spam) from which on a mail is thrown away, if a good one lost costs this many bad ones read. */
  threshold: (cost) => cost / (1 + cost),
};

// ---- two columns, a Gaussian for each class -------------------------------------------------------------------------
// rows: for each class a list of [x, y]. Symmetric matrices are [xx, xy, yy]. A structure is {shape, shared}, shape one of
// "full", "diagonal", "isotropic". What has a variance or covariance of its own is a part: its columns, degrees of freedom
// and scale, a matrix of the inverse Wishart, or a number s for a variance of InverseGamma(dof/2, s/2).

const SHAPES = ["full", "diagonal", "isotropic"];
const sum = (values) => values.reduce((a, b) => a + b, 0);
const logDet = (m) => (Array.isArray(m) ? Math.log(m[0] * m[2] - m[1] * m[1]) : Math.log(m));
const inverse = ([xx, xy, yy]) => [yy, -xy, xx].map((v) => v / (xx * yy - xy * xy));
/** The factor L = [[l, 0], [m, r]] of a covariance, L L'. */
const cholesky = ([xx, xy, yy]) => {
  const l = Math.sqrt(xx), m = xy / l;
  return [l, m, Math.sqrt(yy - m * m)];
};
const squared = ([xx, xy, yy], x, y) => xx * x * x + 2 * xy * x * y + yy * y * y;

const gaussian = {
  moments(rows) {
    const n = rows.length;
    const mean = [0, 1].map((j) => (n ? sum(rows.map((row) => row[j])) / n : 0));
    const about = (i, j) => sum(rows.map((row) => (row[i] - mean[i]) * (row[j] - mean[j])));
    return { n, mean, scatter: [about(0, 0), about(0, 1), about(1, 1)] };
  },

  /** Location and variance within classes, which the weak prior follows; null where rows show no spread. */
  pooled(classes) {
    const N = sum(classes.map((c) => c.n));
    const freedom = N - classes.filter((c) => c.n > 0).length;
    const mean = [0, 1].map((j) => sum(classes.map((c) => c.n * c.mean[j])) / N);
    const variance = [0, 2].map((j) => sum(classes.map((c) => c.scatter[j])) / freedom);
    return freedom > 0 && variance.every((v) => v > 1e-12) ? { mean, variance } : null;
  },

  /** The weak prior: a mean worth .01 row, the variances within classes, no correlation. */
  weak(classes, shape) {
    const pooled = gaussian.pooled(classes);
    if (!pooled) return null;
    const [x, y] = pooled.variance;
    const parts = {
      full: [{ columns: [0, 1], dof: 6, scale: [3 * x, 0, 3 * y] }],
      diagonal: [{ columns: [0], dof: 2, scale: 2 * x }, { columns: [1], dof: 2, scale: 2 * y }],
      isotropic: [{ columns: [0, 1], dof: 2, scale: x + y }],
    };
    return { mean: pooled.mean, kappa: 0.01, parts: parts[shape] };
  },

  /** Return rows and squares that a class adds to a part. */
  step(prior, part, { n, mean, scatter }) {
    const d = mean.map((m, j) => m - prior.mean[j]);
    const between = (prior.kappa * n) / (prior.kappa + n);
    const all = scatter.map((s, place) => s + between * d[place >> 1] * d[(place + 1) >> 1]);
    if (Array.isArray(part.scale)) return { rows: n, squares: all };
    return { rows: n * part.columns.length, squares: sum(part.columns.map((j) => all[2 * j])) };
  },

  added: (part, steps) => ({
    columns: part.columns,
    dof: part.dof + sum(steps.map((s) => s.rows)),
    scale: Array.isArray(part.scale)
      ? part.scale.map((v, place) => v + sum(steps.map((s) => s.squares[place])))
      : part.scale + sum(steps.map((s) => s.squares)),
  }),

  /** The posterior of each class: kappa, mean, parts; shares of the classes under Dirichlet(1, ..., 1). */
  posterior(prior, classes, shared) {
    const N = sum(classes.map((c) => c.n));
    const parts = (those) => prior.parts.map((part) => gaussian.added(part, those.map((c) => gaussian.step(prior, part, c))));
    return classes.map((c) => ({
      kappa: prior.kappa + c.n,
      mean: prior.mean.map((m, j) => m + (c.n / (prior.kappa + c.n)) * (c.mean[j] - m)),
      parts: parts(shared ? classes : [c]),
      share: (c.n + 1) / (N + classes.length),
      rows: c.n + 1,
    }));
  },

  /** log p(x, class) under the posterior: a Student-t of each part. */
  logPredictive: (posterior) => posterior.map(({ kappa, mean, parts, share }) => {
    const unit = 1 + 1 / kappa;
    const terms = parts.map(({ columns, dof, scale }) => {
      const d = columns.length;
      const matrix = Array.isArray(scale);
      const nu = matrix ? dof - d + 1 : dof;
      const level = logGammaRatio(nu / 2, d / 2) - (d / 2) * Math.log(Math.PI * unit) - (matrix ? 1 : d) * 0.5 * logDet(scale);
      const weights = matrix ? inverse(scale) : [Number(columns.includes(0)), 0, Number(columns.includes(1))].map((v) => v / scale);
      return { level, weights, power: (nu + d) / 2 };
    });
    return (x, y) => Math.log(share) +
      sum(terms.map((t) => t.level - t.power * Math.log1p(squared(t.weights, x - mean[0], y - mean[1]) / unit)));
  }),

  /** log p(x, class) of known means, covariances and shares. */
  logDensity: (known) => known.map(({ mean, covariance, share }) => {
    const weights = inverse(covariance);
    const level = Math.log(share) - LOG_2PI - 0.5 * logDet(covariance);
    return (x, y) => level - 0.5 * squared(weights, x - mean[0], y - mean[1]);
  }),

  /** Maximum likelihood: means, covariances and shares; null where it does not exist. */
  ml(classes, { shape, shared }) {
    const N = sum(classes.map((c) => c.n));
    const made = classes.map((c) => {
      const those = shared ? classes : [c];
      const [xx, xy, yy] = [0, 1, 2].map((place) => sum(those.map((t) => t.scatter[place])) / sum(those.map((t) => t.n)));
      const covariance = { full: [xx, xy, yy], diagonal: [xx, 0, yy], isotropic: [(xx + yy) / 2, 0, (xx + yy) / 2] }[shape];
      return { mean: c.mean, covariance, share: c.n / N };
    });
    const exists = ({ covariance: [xx, xy, yy], share }) => share > 0 && xx * yy - xy * xy > 1e-9 * xx * yy;
    return made.every(exists) ? made : null;
  },

  /**
   * Student's t of each class with known degrees of freedom at the mode of its posterior, by EM: a row far out of its class
   * gets a small weight. rows: for each class a list of [x, y]; the prior is that of a full covariance.
   */
  student(rows, prior, nu = 4) {
    const [{ dof, scale }] = prior.parts, N = sum(rows.map((those) => those.length));
    return rows.map((those) => {
      let [mean, covariance] = [prior.mean, scale.map((v) => v / (dof + 4 + those.length))];
      for (let step = 0; step < 2000; step++) {
        const weights = inverse(covariance), before = [...mean, ...covariance];
        const u = those.map(([x, y]) => (nu + 2) / (nu + squared(weights, x - mean[0], y - mean[1])));
        mean = prior.mean.map((m, j) => (prior.kappa * m + sum(those.map((row, i) => u[i] * row[j]))) / (prior.kappa + sum(u)));
        const about = (i, j) => prior.kappa * (prior.mean[i] - mean[i]) * (prior.mean[j] - mean[j]) +
          sum(those.map((row, place) => u[place] * (row[i] - mean[i]) * (row[j] - mean[j])));
        covariance = [about(0, 0), about(0, 1), about(1, 1)].map((v, place) => (v + scale[place]) / (dof + 4 + those.length));
        if ([...mean, ...covariance].every((v, i) => Math.abs(v - before[i]) < 1e-13)) break;
      }
      return { mean, covariance, share: those.length / N };
    });
  },

  /** log p(x, class) of Student's t with known parameters; two columns, so its gammas cancel. */
  logStudent: (known, nu = 4) => known.map(({ mean, covariance, share }) => {
    const weights = inverse(covariance), level = Math.log(share) - LOG_2PI - 0.5 * logDet(covariance);
    return (x, y) => level - ((nu + 2) / 2) * Math.log1p(squared(weights, x - mean[0], y - mean[1]) / nu);
  }),

  /** log p(rows, classes): class by class, the gain of its means, and of each variance or covariance. */
  logEvidence(prior, classes, shared) {
    const N = sum(classes.map((c) => c.n));
    const labels = sum(classes.map((c) => logGammaRatio(1, c.n))) - logGammaRatio(classes.length, N);
    const means = sum(classes.map((c) => -Math.log1p(c.n / prior.kappa) - c.n * Math.log(Math.PI)));
    const gain = (those) => sum(prior.parts.map((part) => {
      const after = gaussian.added(part, those.map((c) => gaussian.step(prior, part, c)));
      const rows = after.dof - part.dof;
      const gammas = Array.isArray(part.scale) ? [0, 1] : [0];
      const ratios = sum(gammas.map((less) => logGammaRatio((part.dof - less) / 2, rows / 2)));
      return 0.5 * (part.dof * (logDet(part.scale) - logDet(after.scale)) - rows * logDet(after.scale)) + ratios;
    }));
    return labels + means + (shared ? gain(classes) : sum(classes.map((c) => gain([c]))));
  },

  /** A draw of the variance or covariance of a part. */
  drawn({ columns, dof, scale }, random) {
    if (!Array.isArray(scale)) {
      const variance = scale / 2 / random.gamma(dof / 2);
      return [columns.includes(0) ? variance : 0, 0, columns.includes(1) ? variance : 0];
    }
    const [a, c] = [dof, dof - 1].map((nu) => Math.sqrt(2 * random.gamma(nu / 2))); // Bartlett: W = A A', A = [[a, 0], [b, c]]
    const b = random.normal();
    const [l, m, r] = cholesky(scale);
    const [p, q, s] = [1 / a, -b / (a * c), 1 / c]; // A⁻¹ = [[p, 0], [q, s]], covariance = (L A⁻ᵀ)(L A⁻ᵀ)'
    const [xx, xy, yx, yy] = [l * p, l * q, m * p, m * q + r * s];
    return [xx * xx + xy * xy, xx * yx + xy * yy, yx * yx + yy * yy];
  },

  /** Draws of means, covariances and shares from the posterior. */
  draws(posterior, shared, count, random) {
    const total = sum(posterior.map((p) => p.rows));
    return Array.from({ length: count }, () => {
      const share = dirichlet(posterior.map((p) => p.share), total, random);
      let covariance;
      return posterior.map(({ kappa, mean, parts }, k) => {
        if (!(shared && k)) {
          covariance = parts.map((part) => gaussian.drawn(part, random)).reduce((one, other) => one.map((v, i) => v + other[i]));
        }
        const [l, m, r] = cholesky(covariance);
        const [u, v] = [random.normal() / Math.sqrt(kappa), random.normal() / Math.sqrt(kappa)];
        return { mean: [mean[0] + l * u, mean[1] + m * u + r * v], covariance, share: share[k] };
      });
    });
  },

  /** The share of draws that agree with most of them on the most probable class. */
  agreement(scorers, x, y) {
    const votes = new Array(scorers[0].length).fill(0);
    for (const scores of scorers) votes[best(scores, x, y)] += 1;
    return Math.max(...votes) / scorers.length;
  },
};

/** The class of the largest score. */
function best(scores, x, y) {
  let [top, winner] = [-Infinity, 0];
  for (let k = 0; k < scores.length; k++) {
    const value = scores[k](x, y);
    if (value > top) [top, winner] = [value, k];
  }
  return winner;
}

// ---- the page -------------------------------------------------------------------------------------------------------

const $ = (id) => document.getElementById(id);

/** Return an element of a picture with its attributes, and a text if it has one. */
function svg(tag, given, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(given)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Return a button; one that stays pressed is true or false, another null. */
function button(words, pressed, action) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = words;
  if (pressed !== null) made.setAttribute("aria-pressed", String(pressed));
  made.onclick = action;
  return made;
}

// Conjugate updates in closed form, as of bayesgen.models; `numbers` of bayesgen/export/scorer.js stand above this text.

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

// ---- a regression ---------------------------------------------------------------------------------------------------
// It has p(class | row) alone, by a link of scores a + b z, under one vector of parameters or under each draw.

const regression = { ...model.score, lines: model.score.kind === "softmax" ? K : 1 };
regression.weights = flat(regression.weights, members.count * regression.lines * (regression.centre.length + 1));
if (regression.cuts) regression.cuts = flat(regression.cuts, members.count * (K - 1));
const FARTHEST = 1e150; // of a column: a row beyond has the probabilities 0 and 1, and its scores might overflow

/** Return the columns of the score, standardised: one of 0 and 1 for each category; 0, their means, where unknown. */
function predictors(x) {
  const z = [];
  const add = (v, column) => {
    const i = z.length;
    z.push(Number.isNaN(v) ? 0 : (v - regression.centre[i]) / regression.scale[i]);
    if (Number.isFinite(z[i])) return;
    throw refusal(column, `the value ${shown(v)} in row 0 is too far from the rows of the fit for float64`, { far: v });
  };
  model.columns.forEach((column, j) => {
    if (column.kind !== "category") add(x[j], column);
    else column.categories.forEach((_, code) => add(Number.isNaN(x[j]) ? NaN : Number(x[j] === code), column));
  });
  const far = Math.max(...z.map(Math.abs));
  return far > FARTHEST ? z.map((v) => v * (FARTHEST / far)) : z;
}

const softplus = (x) => Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
const log1mexp = (x) => Math.log(-Math.expm1(-x)); // log(1 - exp(-x)), x > 0

/** Return the log of the distribution function of the standard normal: a series, beyond -3 a continued fraction. */
function logNormalBelow(x) {
  if (x > 0) return Math.log1p(-Math.exp(logNormalBelow(-x)));
  const level = -0.5 * (x * x + LOG_2PI);
  if (x < -3) {
    let fraction = -x;
    for (let n = 120; n > 0; n--) fraction = n / fraction - x;
    return level - Math.log(fraction);
  }
  let [term, sum] = [x, x];
  for (let n = 3; Math.abs(term) > 1e-18; n += 2) sum += term *= (x * x) / n;
  return Math.log(0.5 + Math.exp(level) * sum);
}

/** Return log [F(high - s) - F(low - s)], F logistic or normal; of the first and last class one end is missing. */
function between(link, s, low, high, first, last) {
  const inner = !first && !last;
  if (link === "logistic") {
    return (inner ? log1mexp(high - low) : 0) - (last ? 0 : softplus(s - high)) - (first ? 0 : softplus(low - s));
  }
  const near = last || (inner && high + low > 2 * s) ? s - low : high - s; // of the interval, or of its mirror image
  const mass = logNormalBelow(near);
  if (!inner) return mass;
  const fall = mass - logNormalBelow(near - (high - low));
  return mass + log1mexp(Math.max(fall, -near * (high - low))); // the log of F is concave
}

/** Return log p(class | row) less the log of the number of draws, under one draw after the other. */
function byDraw(x) {
  const [z, joint] = [predictors(x), new Float64Array(members.count * K)];
  const { weights, cuts, lines, link } = regression;
  const scores = new Float64Array(lines);
  for (let m = 0; m < members.count; m++) {
    let top = -Infinity;
    for (let line = 0; line < lines; line++) {
      const first = (m * lines + line) * (z.length + 1);
      scores[line] = weights[first];
      for (let i = 0; i < z.length; i++) scores[line] += z[i] * weights[first + 1 + i];
      top = Math.max(top, scores[line]);
    }
    if (!cuts) for (let k = 0; k < K; k++) scores[k] -= top; // first of all: scores may be large
    const total = cuts ? 0 : logSum(scores);
    for (let k = 0; k < K; k++) {
      const place = m * (K - 1) + k;
      const log = cuts ? between(link, scores[0], cuts[place - 1], cuts[place], !k, k === K - 1) : scores[k] - total;
      joint[m * K + k] = members.log[m] + log;
    }
  }
  return joint;
}

// ---- entries of a row -----------------------------------------------------------------------------------------------
// Densities look at the columns of a row and at numbers that are derived of one column each, which stand behind them: a
// logarithm log(x + shift), a column bent by Yeo and Johnson's transformation, the place of a number among some values,
// or 1 at one category and 0 at others. Trees also look at weighted sums of several columns.

const WIDTH = model.columns.length;
const FAR = 1e100; // of a bent number, whose square stays within float64
const LOG_FAR = Math.log(FAR);

/** Return sign and log size of a bent number, and a = log(1 + distance/scale). */
function polar(x, [location, scale, power]) {
  const [below, distance] = [x < location, Math.abs(x - location)];
  const p = Math.abs((below ? power - 2 : power) + 1e-200);
  let a = Math.log1p(distance / scale);
  if (a === Infinity) a = Math.log(distance) - Math.log(scale);
  const size = p * a;
  return { sign: below ? -1 : 1, size: size + Math.log(-Math.expm1(-size)) - Math.log(p), a };
}

/** Return the column of a bent number, or of a logarithm. */
function back(e, z) {
  const { bend, shift } = model.derived[e - WIDTH];
  if (!bend) return shift === 1 ? Math.expm1(z) : Math.exp(z) - shift;
  const [location, scale, power] = bend;
  const p = z < 0 ? 2 - power : power;
  return location + scale * Math.sign(z) * Math.expm1(p === 0 ? Math.abs(z) : Math.log1p(p * Math.abs(z)) / p);
}

/** Return the columns of a row and what is derived; a bent number beyond FAR stands there, `beyond` by so many logs. */
function entriesOfRow(x) {
  const z = [...x];
  z.beyond = [];
  model.derived.forEach((derived, place) => {
    const { of, bend, shift, values, level, weights, low, span, centre } = derived;
    const v = x[of];
    if (weights) { // of columns, each between two bounds and a missing one at its mean
      const seen = [...of.keys()].filter((i) => !Number.isNaN(x[of[i]]));
      const part = (i) => weights[i] * (Math.min(Math.max((x[of[i]] - low[i]) / span[i], 0), 1) - centre[i]);
      z.push(seen.length ? seen.reduce((sum, i) => sum + part(i), 0) : NaN);
    } else if (Number.isNaN(v)) z.push(NaN);
    else if (bend) {
      const { sign, size } = polar(v, bend);
      z.push(sign * Math.exp(Math.min(size, LOG_FAR)));
      if (size > LOG_FAR) z.beyond[WIDTH + place] = size - LOG_FAR;
    } else if (shift !== undefined) z.push(shift === 1 ? Math.log1p(v) : Math.log(v + shift));
    else if (values) z.push(values.includes(v) ? values.indexOf(v) : NaN);
    else z.push(Number(v === level));
  });
  return z;
}

/** Return the place in a factor of a column, or of what is derived of it; -1 where the factor does not look at it. */
const placeIn = (f, j) => f.columns.findIndex((e) => e === j || (e >= WIDTH && model.derived[e - WIDTH].of === j));

/** Return the log derivative of all that is derived for densities: theirs are densities of the derived numbers. */
function logSlope(x) {
  return model.derived.reduce((sum, { of, bend, shift, density }) => {
    if (!density || Number.isNaN(x[of])) return sum;
    if (!bend) return sum - (shift === 1 ? Math.log1p(x[of]) : Math.log(x[of] + shift));
    const { sign, a } = polar(x[of], bend);
    return sum + (bend[2] - 1) * sign * a - Math.log(bend[1]);
  }, 0);
}

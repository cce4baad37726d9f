// ---- numbers --------------------------------------------------------------------------------------------------------

const LOG_2PI = Math.log(2 * Math.PI);

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

/** Return log Gamma(a + x)/(Gamma(a) x!). */
function logWays(a, x) {
  const [low, high] = a < x + 1 ? [a, x + 1] : [x + 1, a];
  return logGammaRatio(high, low) - logGamma(low) - Math.log(a + x);
}

/** Return the bytes of a text in base 64. */
function bytesOf(text) {
  const signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const value = new Uint8Array(128);
  for (let place = 0; place < 64; place++) value[signs.charCodeAt(place)] = place;
  const bytes = new Uint8Array((text.length / 4) * 3);
  for (let i = 0, j = 0; i < text.length; i += 4) {
    let bits = 0;
    for (let s = 0; s < 4; s++) bits = (bits << 6) | value[text.charCodeAt(i + s)];
    for (let shift = 16; shift >= 0; shift -= 8) bytes[j++] = (bits >> shift) & 255;
  }
  return bytes.slice(0, bytes.length - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0));
}

const PACKED = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };

/** Return numbers that are written as one number for all, as nested lists, or packed, on one axis. */
function flat(written, size) {
  if (typeof written === "number") return new Float64Array(size).fill(written);
  if (Array.isArray(written)) return Float64Array.from(written.flat(Infinity));
  const [[kind, text]] = Object.entries(written);
  return Float64Array.from(new PACKED[kind](bytesOf(text).buffer));
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

/** Draw probabilities of a Dirichlet of this mean and total. */
function dirichlet(mean, total, random) {
  if (total === Infinity) return mean;
  const gammas = mean.map((share) => random.gamma(share * total));
  const sum = gammas.reduce((a, b) => a + b);
  return sum > 0 ? gammas.map((v) => v / sum) : mean;
}

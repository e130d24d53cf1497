// Recordings at the rate that a model hears. As Listener of tasks/audio.py of the engine.

const RATES = [1000, 384_000]; // samples a second
const [CROSSINGS, CUTOFF] = [6, 0.99]; // of the filter: zero crossings a side, its edge as a part of the lower rate's half

/** The samples of a recording at `wanted` a second. */
export function heard(model, { samples, rate }, wanted) {
  if (rate === wanted) return samples;
  if (!Number.isInteger(rate) || rate < RATES[0] || rate > RATES[1]) {
    model.refuse(`the recording has ${rate} samples a second, the model hears ${wanted}; a whole number from ${RATES.join(" to ")} can be brought to that`);
  }
  const common = greatestDivisor(rate, wanted);
  const [old, fresh] = [rate / common, wanted / common];
  const rows = Array.from({ length: fresh });
  return Float32Array.from({ length: Math.ceil((samples.length * fresh) / old) }, (_, i) => {
    const phase = i % fresh;
    const { first, weights } = (rows[phase] ??= rowOf(phase, old, fresh));
    const begin = Math.floor(i / fresh) * old + first;
    let sum = 0;
    for (let at = Math.max(0, -begin); at < weights.length && begin + at < samples.length; at++) sum += weights[at] * samples[begin + at];
    return sum;
  });
}

/** Weights of the low-pass filter, a sinc under a squared cosine, and the first sample that they are for. */
function rowOf(phase, old, fresh) {
  const base = Math.min(old, fresh) * CUTOFF;
  const [middle, reach] = [(phase * old) / fresh, (CROSSINGS * old) / base];
  const first = Math.ceil(middle - reach);
  const weights = Float32Array.from({ length: Math.floor(middle + reach) + 1 - first }, (_, i) => {
    const t = ((first + i - middle) / old) * base * Math.PI;
    return ((t ? Math.sin(t) / t : 1) * Math.cos(t / CROSSINGS / 2) ** 2 * base) / old;
  });
  return { first, weights };
}

const greatestDivisor = (a, b) => (b ? greatestDivisor(b, a % b) : a);

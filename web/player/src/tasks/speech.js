// Speech in recordings: the probability of each chunk, and the stretches that these make. As tasks/voice_detector.py.

import { recordingOf } from "../recordings.js";
import { heard } from "./resampling.js";

const HYSTERESIS = 0.15; // speech ends this far below the threshold

export const speech = {
  takes: (given) => recordingOf(given) !== null,

  async found(model, given, numbers) {
    const { chunk, context, rate, input, scores, states } = model.facts.decode;
    const samples = heard(model, recordingOf(given), rate);
    const probabilities = [];
    let kept = {};
    for (let at = 0; at < samples.length; at += chunk) {
      const window = new Float32Array(context + chunk);
      window.set(samples.subarray(Math.max(at - context, 0), at + chunk), Math.max(context - at, 0));
      const outputs = await model.infer({ [input]: window, ...kept });
      probabilities.push(outputs[scores].data[0]);
      kept = Object.fromEntries(states.map(([into, from]) => [into, outputs[from]]));
    }
    return stretches(probabilities, chunk, rate, samples.length, Object.fromEntries(Object.entries(numbers).map(([name, [value]]) => [name, value])));
  },
};

function stretches(probabilities, chunk, rate, total, rule) {
  const found = runs(probabilities, chunk, total, rule.threshold, (rule.min_silence_ms * rate) / 1000)
    .filter(([start, end]) => end - start > (rule.min_speech_ms * rate) / 1000);
  const pad = (rule.padding_ms * rate) / 1000;
  return found.map(([start, end], i) => {
    const before = i ? (start - found[i - 1][1]) / 2 : start;
    const after = i + 1 < found.length ? (found[i + 1][0] - end) / 2 : total - end;
    const scores = probabilities.slice(Math.floor(start / chunk), Math.ceil(end / chunk));
    const score = scores.reduce((sum, each) => sum + each, 0) / scores.length;
    return { start: (start - Math.min(pad, before)) / rate, end: (end + Math.min(pad, after)) / rate, score, label: "" };
  });
}

/** Samples from and to; silences shorter than `silence` do not end a stretch. */
function runs(probabilities, chunk, total, threshold, silence) {
  const found = [];
  const low = Math.max(threshold - HYSTERESIS, 0.01);
  let [start, quiet] = [-1, -1];
  probabilities.forEach((probability, i) => {
    const at = i * chunk;
    if (probability >= threshold) [start, quiet] = [start < 0 ? at : start, -1];
    else if (probability < low && start >= 0) {
      if (quiet < 0) quiet = at;
      if (at - quiet >= silence) {
        found.push([start, quiet]);
        [start, quiet] = [-1, -1];
      }
    }
  });
  return start >= 0 ? [...found, [start, total]] : found;
}

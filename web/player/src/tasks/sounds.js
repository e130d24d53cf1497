// Sounds of a recording: its windows, one after the other, and the stretches that these make.

import { recordingOf } from "../recordings.js";
import { heard } from "./resampling.js";

export const sounds = {
  takes: (given) => recordingOf(given) !== null,

  async found(model, given, { min_score: [least] }) {
    const { sound, decode } = model.facts;
    const samples = heard(model, recordingOf(given), sound.rate);
    const windows = [];
    for (const part of windowsOf(samples, sound.window)) {
      windows.push((await model.infer({ [sound.input]: part }))[decode.scores].data);
    }
    return soundsIn(windows, decode, sound.window / sound.rate, samples.length / sound.rate, least);
  },
};

/** The windows of a recording, one after the other; the last is filled up with silence. */
function* windowsOf(samples, window) {
  for (let at = 0; at < samples.length; at += window) {
    const part = new Float32Array(window);
    part.set(samples.subarray(at, at + window));
    yield part;
  }
}

/** Windows in a row whose best class is the same, and likely enough, are one sound; as tasks/audio_classifier.py says. */
function soundsIn(windows, { labels }, windowS, seconds, least) {
  const runs = [];
  windows.forEach((scores, i) => {
    const index = scores.indexOf(scores.reduce((most, score) => Math.max(most, score)));
    if (scores[index] < least) return;
    const last = runs.at(-1);
    if (last?.behind === i && last.index === index) Object.assign(last, { behind: i + 1, total: last.total + scores[index] });
    else runs.push({ first: i, behind: i + 1, index, total: scores[index] });
  });
  return runs.map(({ first, behind, index, total }) => ({
    start: first * windowS, end: Math.min(behind * windowS, seconds), score: total / (behind - first), label: labels[index] ?? "",
  }));
}

// Recordings: what counts as one, the windows of it that a model hears, and the stretches that these make.

import { PlayerError } from "./errors.js";

/** {samples, rate} of a recording: an AudioBuffer, or samples -1..1 with their rate; null for anything else. */
export function recordingOf(given) {
  if (given?.constructor?.name === "AudioBuffer") {
    const channels = Array.from({ length: given.numberOfChannels }, (_, i) => given.getChannelData(i));
    const mixed = (_, i) => channels.reduce((sum, channel) => sum + channel[i], 0) / channels.length;
    return { samples: channels.length > 1 ? Float32Array.from(channels[0], mixed) : channels[0], rate: given.sampleRate };
  }
  return given?.samples instanceof Float32Array && given.rate ? { samples: given.samples, rate: given.rate } : null;
}

/** The windows of a recording, one after the other; the last is filled up with silence. */
export function* windowsOf({ samples, rate }, { window, rate: wanted }) {
  if (rate !== wanted) {
    const how = `decode it with new AudioContext({ sampleRate: ${wanted} }).decodeAudioData`;
    throw new PlayerError("input", `the recording has ${rate} samples a second, the model hears ${wanted}: ${how}`);
  }
  for (let at = 0; at < samples.length; at += window) {
    const part = new Float32Array(window);
    part.set(samples.subarray(at, at + window));
    yield part;
  }
}

/** Windows in a row whose best class is the same, and likely enough, are one sound; as tasks/audio_classifier.py says. */
export function soundsIn(windows, { labels }, windowS, seconds, least) {
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

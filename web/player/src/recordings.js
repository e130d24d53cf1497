// Recordings: what counts as one.

/** {samples, rate} of a recording: an AudioBuffer, or samples -1..1 with their rate; null for anything else. */
export function recordingOf(given) {
  if (given?.constructor?.name === "AudioBuffer") {
    const channels = Array.from({ length: given.numberOfChannels }, (_, i) => given.getChannelData(i));
    const mixed = (_, i) => channels.reduce((sum, channel) => sum + channel[i], 0) / channels.length;
    return { samples: channels.length > 1 ? Float32Array.from(channels[0], mixed) : channels[0], rate: given.sampleRate };
  }
  return given?.samples instanceof Float32Array && given.rate ? { samples: given.samples, rate: given.rate } : null;
}

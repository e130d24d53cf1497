// Samples of sound: put together, drawn as peaks, written as a WAV file.

const COLUMNS = 800; // of a drawing

/** Blocks of samples in one. */
export function joined(blocks) {
  const all = new Float32Array(blocks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const block of blocks) {
    all.set(block, at);
    at += block.length;
  }
  return all;
}

/** The least and the largest sample of each of COLUMNS parts, in turn. */
export function peaksOf(samples) {
  const count = Math.max(1, Math.min(COLUMNS, samples.length));
  const peaks = new Float32Array(2 * count);
  for (let column = 0; column < count; column += 1) {
    const end = Math.floor(((column + 1) * samples.length) / count);
    let [low, high] = [0, 0];
    for (let i = Math.floor((column * samples.length) / count); i < end; i += 1) {
      if (samples[i] < low) low = samples[i];
      else if (samples[i] > high) high = samples[i];
    }
    peaks[2 * column] = low;
    peaks[2 * column + 1] = high;
  }
  return peaks;
}

/** A WAV file of one channel of 16-bit samples. */
export function waveFile(samples, rate) {
  const bytes = 2 * samples.length;
  const view = new DataView(new ArrayBuffer(44 + bytes));
  const text = (at, letters) => [...letters].forEach((letter, i) => view.setUint8(at + i, letter.charCodeAt(0)));
  const words = [[4, 36 + bytes], [16, 16], [24, rate], [28, 2 * rate], [40, bytes]];
  text(0, "RIFF");
  text(8, "WAVEfmt ");
  text(36, "data");
  for (const [at, value] of words) view.setUint32(at, value, true);
  for (const [at, value] of [[20, 1], [22, 1], [32, 2], [34, 16]]) view.setUint16(at, value, true);
  samples.forEach((value, i) => view.setInt16(44 + 2 * i, 32767 * Math.min(1, Math.max(-1, value)), true));
  return new File([view], "recording.wav", { type: "audio/wav" });
}

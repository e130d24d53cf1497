// Kinds of files: the model looks at both ends, rules decide whether to believe it. As tasks/file_classifier.py.

const SPACES = [9, 10, 11, 12, 13, 32]; // bytes

export const files = {
  takes: (given) => given instanceof Blob,

  async found(model, blob) {
    const rules = model.facts.decode;
    const [head, tail] = await Promise.all([blob.slice(0, rules.block), blob.slice(Math.max(blob.size - rules.block, 0))].map(bytesOf));
    const first = head.subarray(leading(head)).subarray(0, rules.begin);
    const kept = tail.subarray(0, tail.length - leading(tail.slice().reverse()));
    const last = kept.subarray(Math.max(kept.length - rules.end, 0));
    if (blob.size < rules.least || first.length < rules.least) return [few(head, blob.size, rules)];
    const seen = new Int32Array(rules.begin + rules.end).fill(rules.filling);
    seen.set(first);
    seen.set(last, seen.length - last.length);
    const outputs = await model.infer({ [rules.input]: seen });
    const scores = outputs[rules.scores].data;
    return Array.from(outputs[rules.places].data, (place, i) => {
      const guess = rules.labels[Number(place)];
      return i ? kind(guess, scores[i], guess, rules) : believed(guess, scores[i], rules);
    });
  },
};

const bytesOf = async (blob) => new Uint8Array(await blob.arrayBuffer());

function leading(bytes) {
  const at = bytes.findIndex((byte) => !SPACES.includes(byte));
  return at < 0 ? bytes.length : at;
}

/** The kind of a file of too few bytes. */
function few(head, size, rules) {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(head);
  } catch {
    return kind("unknown", 1, "", rules);
  }
  return kind(size ? "txt" : "empty", 1, "", rules);
}

/** The kind of a file whose best label this is. */
function believed(guess, score, rules) {
  const { mode, medium, high, overwrite, kinds } = rules;
  const label = overwrite[guess] ?? guess;
  const least = { high: high[guess] ?? medium, medium, guess: 0 }[mode];
  return kind(score < least ? (kinds[label]?.[0] ? "txt" : "unknown") : label, score, guess, rules);
}

function kind(label, score, guess, { kinds }) {
  const [, mimeType, group, description] = kinds[label] ?? [false, "", "", ""];
  return { label, score, guess, mimeType, group, description };
}

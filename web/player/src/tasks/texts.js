// Meanings and classes of texts: word pieces in, a vector or scores out. As tasks/sentence_embedder.py and text_classifier.py.

import { WordPieces } from "./word_pieces.js";

const tokenizers = new WeakMap(); // of packages

export const sentences = {
  takes: (given) => typeof given === "string" || (Array.isArray(given) && given.length > 0 && given.every((text) => typeof text === "string")),

  async found(model, given) {
    const found = [];
    for (const text of [given].flat()) {
      const { values, pieces } = await read(model, text);
      found.push({ text, values, pieces });
    }
    return found;
  },
};

export const texts = {
  takes: (given) => typeof given === "string",

  async found(model, text) {
    const { labels, most } = model.facts.decode;
    const { values } = await read(model, text);
    const found = Array.from(values, (score, index) => ({ index, label: labels[index] ?? "", score }));
    return found.sort((a, b) => b.score - a.score).slice(0, most);
  },
};

/** The model's numbers for a text, and how many pieces it read. */
async function read(model, text) {
  const { decode } = model.facts;
  if (!tokenizers.has(model)) tokenizers.set(model, new WordPieces(new TextDecoder().decode(await model.file.section("files/vocabulary"))));
  const pieces = tokenizers.get(model);
  const [rows, size] = model.inputs[0].shape;
  const batch = typeof rows === "number" ? rows : 1;
  const lengths = typeof size === "number" ? [size] : decode.lengths;
  const numbers = pieces.encode(text, lengths.at(-1));
  const length = lengths.find((each) => numbers.length <= each);
  const given = {
    [decode.ids]: [...numbers, ...Array(batch * length - numbers.length).fill(pieces.padding)],
    [decode.mask]: [...numbers.map(() => 1), ...Array(batch * length - numbers.length).fill(0)],
    [decode.types]: Array(batch * length).fill(0),
  };
  const outputs = await model.infer(Object.fromEntries(model.inputs.map(({ name, dtype }) => {
    const data = dtype === "int64" ? BigInt64Array.from(given[name], BigInt) : Int32Array.from(given[name]);
    return [name, { data, shape: [batch, length] }];
  })));
  const { data } = outputs[decode.output];
  return { values: data.slice(0, data.length / batch), pieces: numbers.length };
}

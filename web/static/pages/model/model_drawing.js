// From a graph as the engine tells it ({nodes, values, inputs, outputs}) to boxes and lines: what there is to draw, how
// large each box is, and where a worker (model_layout.js) says that it goes.

export const FONTS = { title: "600 13px system-ui, sans-serif", line: "11px system-ui, sans-serif" };
export const COLOURS = 7; // .colour-0 to .colour-6 of the style sheet
const WIDEST = 210; // pixels of a box
const PAD = 11;
const HEIGHT = { op: 42, end: 26 };

let measure = null; // a canvas' context, made once

function widthOf(text, font) {
  measure ??= document.createElement("canvas").getContext("2d");
  measure.font = font;
  return measure.measureText(text).width;
}

/** The text, cut in the middle until it is no wider than a box. */
function fitted(text, font) {
  const most = WIDEST - 2 * PAD;
  if (widthOf(text, font) <= most) return text;
  let keep = Math.floor((text.length * most) / widthOf(text, font)) - 1;
  const cut = () => `${text.slice(0, Math.ceil(keep / 2))}…${text.slice(text.length - Math.floor(keep / 2))}`;
  while (keep > 2 && widthOf(cut(), font) > most) keep -= 1;
  return cut();
}

/** The sizes in a type such as "float32 [1, 3]" or "float32[1x3]", as 1 × 3. */
export function sizesOf(type) {
  const inner = /\[(.*?)\]/.exec(type)?.[1];
  return inner === undefined ? "" : inner.split(/x|, /).join(" × ");
}

/** Operators and how often each occurs, most frequent first. */
export function countOperators(nodes) {
  const counts = new Map();
  for (const { op } of nodes) counts.set(op, (counts.get(op) ?? 0) + 1);
  return [...counts].sort(([a, m], [b, n]) => n - m || a.localeCompare(b));
}

/** The values that need no input of the model: weights, and what is computed of them alone. */
function constants({ nodes, values }) {
  const found = new Set(Object.keys(values).filter((key) => values[key].bytes > 0));
  for (const { inputs, outputs } of nodes) {
    if (inputs.some(Boolean) && inputs.every((key) => !key || found.has(key))) for (const key of outputs) found.add(key);
  }
  return found;
}

/**
 * Boxes {kind, node, key, title, line, colour} and edges [from, to] between them. Nodes that work on weights alone are
 * left out; `at` says which box a node is, -1 for none.
 */
export function drawingOf(graph) {
  const { nodes, values, inputs, outputs } = graph;
  const fixed = constants(graph);
  const colours = new Map(countOperators(nodes).map(([op], place) => [op, Math.min(place, COLOURS - 1)]));
  const boxes = inputs.map((key) => ({ kind: "input", node: -1, key, title: values[key]?.name || "input", colour: -1 }));
  const at = nodes.map((node, number) => {
    if (node.outputs.length && node.outputs.every((key) => fixed.has(key))) return -1;
    const line = sizesOf(values[node.outputs[0]]?.type ?? "") || node.name;
    return boxes.push({ kind: "op", node: number, key: "", title: node.op, line, colour: colours.get(node.op) }) - 1;
  });
  const makers = new Map(inputs.map((key, box) => [key, box]));
  nodes.forEach((node, number) => at[number] >= 0 && node.outputs.forEach((key) => makers.set(key, at[number])));
  const edges = [];
  const join = (key, to) => makers.has(key) && makers.get(key) !== to && edges.push([makers.get(key), to, key]);
  nodes.forEach((node, number) => at[number] >= 0 && new Set(node.inputs).forEach((key) => join(key, at[number])));
  for (const key of outputs) {
    boxes.push({ kind: "output", node: -1, key, title: values[key]?.name || "output", colour: -1 });
    join(key, boxes.length - 1);
  }
  return { boxes: boxes.map(sized), edges, at };
}

function sized(box) {
  if (box.kind === "op") {
    const [title, line] = [fitted(box.title, FONTS.title), fitted(box.line, FONTS.line)];
    const width = Math.max(64, widthOf(title, FONTS.title), widthOf(line, FONTS.line)) + 2 * PAD;
    return { ...box, title, line, width, height: HEIGHT.op };
  }
  const title = fitted(box.title, FONTS.line);
  return { ...box, title, line: "", width: Math.max(48, widthOf(title, FONTS.line)) + 2 * PAD, height: HEIGHT.end };
}

/** Asks a worker of this address where everything goes; one drawing at a time, the newest counts. */
export class Layouts {
  #address;
  #worker = null;

  constructor(address) {
    this.#address = address;
  }

  /** The drawing with `x` and `y` of every box, and `bends` for each edge; null if a newer one took its place. */
  async arranged(drawing) {
    this.#worker?.terminate();
    const worker = (this.#worker = new Worker(this.#address, { type: "module", name: "graph layout" }));
    const sizes = Float32Array.from(drawing.boxes.flatMap(({ width, height }) => [width, height]));
    const found = await new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => {
        event.preventDefault();
        reject(new Error(event.message || "its script could not be loaded"));
      };
      worker.postMessage({ sizes, edges: drawing.edges.map(([from, to]) => [from, to]) });
    });
    if (worker !== this.#worker) return null;
    worker.terminate();
    const boxes = drawing.boxes.map((box, at) => ({ ...box, x: found.xs[at], y: found.ys[at] }));
    return { ...drawing, boxes, bends: found.bends };
  }
}

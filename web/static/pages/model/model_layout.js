// Lays a graph out, in a worker of its own: layer by layer from top to bottom, by dagre. Dagre's time grows much faster
// than its graph, so it is asked in pieces: models are narrow here and there, and are cut where they are. What leads
// past many layers, such as a mask that every block reads, is left out of the layout and drawn as a far edge.

import { Graph, layout } from "./dagre.js";

const FAR = 24; // layers
const LEAST = 16; // nodes of a piece, before it is cut at a narrow place
const MOST = 90; // nodes, after which any place will do
const GAP = { node: 18, edge: 10, layer: 30 };

/** The layer of each node: as early as its inputs allow, and for nodes without inputs as late as their readers do. */
export function layersOf(count, edges) {
  const readers = Array.from({ length: count }, () => []);
  const waiting = new Uint32Array(count);
  for (const [from, to] of edges) {
    readers[from].push(to);
    waiting[to] += 1;
  }
  const sources = Uint8Array.from(waiting, (number) => Number(number === 0));
  const layers = new Int32Array(count);
  const ready = [...waiting.keys()].filter((node) => !waiting[node]);
  const settled = new Uint8Array(count);
  let stuck = 0;
  for (let at = 0; at < count; at += 1) {
    if (at === ready.length) { // a circle: broken where it comes first
      while (settled[stuck] || ready.includes(stuck)) stuck += 1;
      ready.push(stuck);
    }
    const node = ready[at];
    settled[node] = 1;
    for (const to of readers[node]) {
      if (settled[to]) continue;
      layers[to] = Math.max(layers[to], layers[node] + 1);
      waiting[to] -= 1;
      if (waiting[to] === 0) ready.push(to);
    }
  }
  for (let node = 0; node < count; node += 1) {
    if (sources[node] && readers[node].length) layers[node] = Math.min(...readers[node].map((to) => layers[to])) - 1;
  }
  const first = Math.min(0, ...layers);
  return layers.map((layer) => layer - first);
}

/** The last layer of each piece. */
export function cutsOf(layers, near) {
  const last = Math.max(0, ...layers);
  const sizes = new Uint32Array(last + 1);
  for (const layer of layers) sizes[layer] += 1;
  const crossing = Array.from({ length: last + 1 }, () => new Set()); // nodes whose results cross the end of a layer
  for (const [from, to] of near) for (let layer = layers[from]; layer < layers[to]; layer += 1) crossing[layer].add(from);
  const cuts = [];
  let size = 0;
  let best = -1;
  for (let layer = 0; layer < last; layer += 1) {
    size += sizes[layer];
    if (size < LEAST) continue;
    if (best < 0 || crossing[layer].size <= crossing[best].size) best = layer;
    if (crossing[layer].size > 1 && size < MOST) continue;
    const end = crossing[layer].size <= 1 ? layer : best;
    cuts.push(end);
    size = 0;
    for (let later = end + 1; later <= layer; later += 1) size += sizes[later];
    best = -1;
  }
  return [...cuts, last];
}

/** One piece: its nodes, and as phantoms those of earlier pieces that its edges come from. */
function place(nodes, edges, sizes, phantoms) {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: GAP.node, edgesep: GAP.edge, ranksep: GAP.layer, ranker: "tight-tree" });
  for (const node of phantoms) graph.setNode(String(node), { width: 1, height: 1 });
  for (const node of nodes) graph.setNode(String(node), { width: sizes[2 * node], height: sizes[2 * node + 1] });
  for (const { from, to, number } of edges) graph.setEdge(String(from), String(to), { number }, String(number));
  layout(graph);
  return graph;
}

/** Where nodes lie (x, y of their middles) and where edges bend; `sizes` has each node's width and height. */
export function arrange(sizes, edges) {
  const count = sizes.length / 2;
  const layers = layersOf(count, edges);
  const span = ([from, to]) => layers[to] - layers[from];
  const near = edges.filter((edge) => span(edge) > 0 && span(edge) <= FAR);
  const cuts = cutsOf(layers, near);
  const pieceOf = new Int32Array(Math.max(0, ...layers) + 1);
  cuts.forEach((end, piece) => pieceOf.fill(piece, piece ? cuts[piece - 1] + 1 : 0, end + 1));
  const pieces = cuts.map(() => ({ nodes: [], edges: [], phantoms: new Set() }));
  for (let node = 0; node < count; node += 1) pieces[pieceOf[layers[node]]].nodes.push(node);
  edges.forEach((edge, number) => {
    if (span(edge) <= 0 || span(edge) > FAR) return;
    const [from, to] = edge;
    const [above, below] = [pieceOf[layers[from]], pieceOf[layers[to]]];
    if (above !== below && below !== above + 1) return; // past a whole piece
    if (above !== below) pieces[below].phantoms.add(from);
    pieces[below].edges.push({ from, to, number });
  });
  const found = { xs: new Float32Array(count), ys: new Float32Array(count), bends: edges.map(() => null) };
  let bottom = 0;
  for (const piece of pieces) bottom = lay(piece, sizes, found, bottom);
  return found;
}

/** Lays a piece below what is there, its phantoms under the nodes that they stand for; the new bottom. */
function lay({ nodes, edges, phantoms }, sizes, { xs, ys, bends }, bottom) {
  const graph = place(nodes, edges, sizes, phantoms);
  const at = (node) => graph.node(String(node));
  const top = Math.min(...nodes.map((node) => at(node).y - at(node).height / 2));
  const shifts = [...phantoms].map((node) => xs[node] - at(node).x);
  const middle = nodes.reduce((sum, node) => sum + at(node).x, 0) / nodes.length;
  const right = shifts.length ? shifts.reduce((sum, shift) => sum + shift, 0) / shifts.length : -middle;
  const down = bottom ? bottom + GAP.layer - top : -top;
  for (const node of nodes) [xs[node], ys[node]] = [at(node).x + right, at(node).y + down];
  for (const { v, w, name } of graph.edges()) {
    const points = graph.edge({ v, w, name }).points.map(({ x, y }) => [x + right, y + down]);
    if (phantoms.has(Number(v))) points[0] = [xs[v], ys[v] + sizes[2 * v + 1] / 2];
    bends[name] = points.flat();
  }
  return Math.max(...nodes.map((node) => ys[node] + sizes[2 * node + 1] / 2));
}

globalThis.addEventListener?.("message", ({ data: { sizes, edges } }) => {
  globalThis.postMessage(arrange(sizes, edges));
});

// A LeNet written by hand against the standard interface alone: it works with any `navigator.ml`, and checks itself.

const LAYERS = [ // height and width of the filters, channels in and out
  { size: 5, from: 1, to: 6 },
  { size: 5, from: 6, to: 16 },
];
const CLASSES = 10;

/** Numbers in [-0.5, 0.5), the same for the same seed. */
function numbers(count, seed) {
  let state = seed;
  return Float32Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296 - 0.5;
  });
}

function weights() {
  const layers = LAYERS.map(({ size, from, to }, i) => ({
    filter: numbers(to * from * size * size, 10 + i), bias: numbers(to, 20 + i), shape: [to, from, size, size],
  }));
  return { layers, matrix: numbers(16 * 4 * 4 * CLASSES, 30), bias: numbers(CLASSES, 31) };
}

async function build(context, { layers, matrix, bias }) {
  const builder = new MLGraphBuilder(context);
  const constant = (shape, data) => builder.constant({ dataType: "float32", shape }, data);
  let x = builder.input("image", { dataType: "float32", shape: [1, 1, 28, 28] });
  for (const layer of layers) {
    x = builder.conv2d(x, constant(layer.shape, layer.filter), { bias: constant([layer.shape[0]], layer.bias) });
    x = builder.averagePool2d(builder.relu(x), { windowDimensions: [2, 2], strides: [2, 2] });
  }
  x = builder.reshape(x, [1, 256]);
  x = builder.gemm(x, constant([256, CLASSES], matrix), { c: constant([CLASSES], bias) });
  return builder.build({ scores: builder.softmax(x, 1) });
}

/** The same in plain loops. */
function reference(image, { layers, matrix, bias }) {
  let [x, side] = [image, 28];
  for (const { shape: [to, from, size], filter, bias: b } of layers) {
    const wide = side - size + 1;
    const half = wide / 2;
    const y = new Float64Array(to * half * half);
    for (let o = 0; o < to; o++) for (let r = 0; r < wide; r++) for (let c = 0; c < wide; c++) {
      let sum = b[o];
      for (let i = 0; i < from; i++) for (let u = 0; u < size; u++) for (let v = 0; v < size; v++) {
        sum += x[(i * side + r + u) * side + c + v] * filter[((o * from + i) * size + u) * size + v];
      }
      y[(o * half + (r >> 1)) * half + (c >> 1)] += Math.max(sum, 0) / 4;
    }
    [x, side] = [y, half];
  }
  const logits = Array.from(bias, (b, j) => x.reduce((sum, value, i) => sum + value * matrix[i * CLASSES + j], b));
  const powers = logits.map((value) => Math.exp(value - Math.max(...logits)));
  return powers.map((value) => value / powers.reduce((a, b) => a + b));
}

/** {scores, error}: what the network says of an image, and the largest difference from plain loops. */
export async function runLeNet(options) {
  const context = await navigator.ml.createContext(options);
  const known = weights();
  const graph = await build(context, known);
  const image = await context.createTensor({ dataType: "float32", shape: [1, 1, 28, 28], writable: true });
  const scores = await context.createTensor({ dataType: "float32", shape: [1, CLASSES], readable: true });
  const pixels = numbers(784, 1);
  context.writeTensor(image, pixels);
  context.dispatch(graph, { image }, { scores });
  const got = Array.from(new Float32Array(await context.readTensor(scores)));
  const wanted = reference(pixels, known);
  return { accelerated: context.accelerated, scores: got, error: Math.max(...got.map((value, i) => Math.abs(value - wanted[i]))) };
}

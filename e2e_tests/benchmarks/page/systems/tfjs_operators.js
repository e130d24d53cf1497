// webinfer's operators in TF.js. Weights come in TF.js's own layouts (HWIO, HWCM): the exporter turned them.

const FUSED = { none: "linear", relu: "relu", relu6: "relu6", prelu: "prelu", sigmoid: "sigmoid" };

const CLAMPS = {
  none: (tf, x) => x,
  relu: (tf, x) => tf.relu(x),
  relu6: (tf, x) => tf.relu6(x),
  relu_n1_to_1: (tf, x) => tf.clipByValue(x, -1, 1),
  hard_swish: (tf, x) => tf.mul(x, tf.mul(tf.relu6(tf.add(x, 3)), 1 / 6)),
  sigmoid: (tf, x) => tf.sigmoid(x),
  tanh: (tf, x) => tf.tanh(x),
};

/** "same" or "valid" where that is what the pads are, else TF.js's explicit form. */
function padding(x, window, a) {
  const [top, bottom, left, right] = a.pads;
  if (!(top | bottom | left | right)) return "valid";
  const fits = [[0, top, bottom], [1, left, right]].every(([axis, before, after]) => {
    const size = x.shape[1 + axis], reach = (window[axis] - 1) * (a.dilation?.[axis] ?? 1) + 1;
    const total = Math.max((Math.ceil(size / a.stride[axis]) - 1) * a.stride[axis] + reach - size, 0);
    return before === total >> 1 && after === total - (total >> 1);
  });
  return fits ? "same" : [[0, 0], [top, bottom], [left, right], [0, 0]];
}

function withResidual(tf, y, residual, slope, a) {
  const missing = y.shape[3] - residual.shape[3];
  const whole = missing ? tf.pad(residual, [[0, 0], [0, 0], [0, 0], [0, missing]]) : residual;
  const sum = tf.add(y, whole);
  return a.activation === "prelu" ? tf.prelu(sum, slope) : CLAMPS[a.activation](tf, sum);
}

function convolution(kind) {
  return (tf, [x, filter, bias, residual, slope], a) => {
    if (a.groups > 1 && kind === "conv2d") throw new Error("TF.js has no grouped convolution");
    const fused = !residual && FUSED[a.activation] !== undefined;
    const y = tf.fused[kind]({
      x, filter, strides: a.stride, dilations: a.dilation, pad: padding(x, filter.shape.slice(0, 2), a),
      bias: bias ?? undefined,
      activation: fused ? FUSED[a.activation] : "linear",
      preluActivationWeights: fused && slope ? slope : undefined,
    });
    if (residual) return withResidual(tf, y, residual, slope, a);
    return fused ? y : CLAMPS[a.activation](tf, y);
  };
}

function transposed(tf, [x, filter, bias, residual, slope], a) {
  if (a.groups > 1 || a.dilation.some((d) => d > 1)) throw new Error("TF.js has no grouped or dilated transposed convolution");
  const [n, ih, iw] = x.shape, [kh, kw, co] = filter.shape;
  const [top, bottom, left, right] = a.pads;
  const full = [(ih - 1) * a.stride[0] + kh + a.output_padding[0], (iw - 1) * a.stride[1] + kw + a.output_padding[1]];
  let y = tf.conv2dTranspose(x, filter, [n, full[0], full[1], co], a.stride, "valid");
  if (top | bottom | left | right) y = tf.slice(y, [0, top, left, 0], [n, full[0] - top - bottom, full[1] - left - right, co]);
  if (bias) y = tf.add(y, bias);
  if (residual) return withResidual(tf, y, residual, slope, a);
  return a.activation === "prelu" ? tf.prelu(y, slope) : CLAMPS[a.activation](tf, y);
}

const pool = (kind) => (tf, [x], a) => CLAMPS[a.activation](tf, tf.pool(x, a.window, kind, padding(x, a.window, a), a.dilation, a.stride));
const unary = (name) => (tf, [x]) => tf[name](x);
const binary = (name) => (tf, [x, y], a) => CLAMPS[a.activation ?? "none"](tf, tf[name](x, y));
const reduce = (name) => (tf, [x], a) => tf[name](x, a.axes, a.keep_dims);

function matmul(tf, [x, y, bias, slope], a) {
  const fused = FUSED[a.activation] !== undefined && a.activation !== "prelu";
  if (x.rank === 2 && y.rank === 2 && fused) {
    return tf.fused.matMul({ a: x, b: y, transposeA: a.transpose_a, transposeB: a.transpose_b, bias: bias ?? undefined, activation: FUSED[a.activation] });
  }
  const product = tf.matMul(x, y, a.transpose_a, a.transpose_b);
  return CLAMPS[a.activation](tf, bias ? tf.add(product, bias) : product);
}

function concat(tf, inputs, a) {
  return tf.concat(inputs, a.axis);
}

function pad(tf, [x], a) {
  if (a.mode !== "constant") return tf.mirrorPad(x, a.before.map((before, i) => [before, a.after[i]]), a.mode);
  return tf.pad(x, a.before.map((before, i) => [before, a.after[i]]), a.value);
}

function slice(tf, [x], a) {
  if (a.steps.every((step) => step === 1)) return tf.slice(x, a.starts, a.sizes);
  return tf.stridedSlice(x, a.starts, a.starts.map((start, i) => start + a.sizes[i] * a.steps[i]), a.steps);
}

/** operator name -> (tf, inputs, attrs) => tensor */
export const EXECUTE = {
  abs: unary("abs"), add: binary("add"), average_pool2d: pool("avg"), clamp: (tf, [x], a) => tf.clipByValue(x, a.a, a.b),
  concat, conv2d: convolution("conv2d"), conv_transpose2d: transposed,
  depth_to_space: (tf, [x], a) => tf.depthToSpace(x, a.block, "NHWC"),
  depthwise_conv2d: convolution("depthwiseConv2d"), div: binary("div"), elu: unary("elu"), exp: unary("exp"),
  expand: (tf, [x], a) => tf.broadcastTo(x, a.shape),
  floor: unary("floor"), hard_swish: (tf, [x]) => CLAMPS.hard_swish(tf, x), identity: (tf, [x]) => x.clone(),
  leaky_relu: (tf, [x], a) => tf.leakyRelu(x, a.a), log: unary("log"), matmul, max_pool2d: pool("max"),
  maximum: binary("maximum"), minimum: binary("minimum"), mul: binary("mul"), neg: unary("neg"), pad,
  prelu: (tf, [x, slope]) => tf.prelu(x, slope), reduce_max: reduce("max"), reduce_mean: reduce("mean"),
  reduce_min: reduce("min"), reduce_sum: reduce("sum"), relu: unary("relu"), relu6: unary("relu6"),
  relu_n1_to_1: (tf, [x]) => tf.clipByValue(x, -1, 1),
  reshape: (tf, [x], a) => tf.reshape(x, a.shape),
  resize_bilinear: (tf, [x], a) => tf.image.resizeBilinear(x, a.size, a.align_corners, a.half_pixel_centers),
  resize_nearest: (tf, [x], a) => tf.image.resizeNearestNeighbor(x, a.size, a.align_corners, a.half_pixel_centers),
  rsqrt: unary("rsqrt"), sigmoid: unary("sigmoid"), slice, softmax: (tf, [x], a) => tf.softmax(a.beta === 1 ? x : tf.mul(x, a.beta), a.axis),
  sqrt: unary("sqrt"), square: unary("square"), squared_difference: binary("squaredDifference"), sub: binary("sub"),
  tanh: unary("tanh"), tile: (tf, [x], a) => tf.tile(x, a.repeats), transpose: (tf, [x], a) => tf.transpose(x, a.perm),
};

// Layers models as TensorFlow.js itself writes them: node layers_models.cjs MODULES FOLDER
//
// Each goes to FOLDER/<name>/model.json with its weights, which are random numbers.

const fs = require('fs');
const path = require('path');
const {createRequire} = require('module');

const [modules, folder] = process.argv.slice(2);
const load = createRequire(path.join(modules, 'package.json'));
const tf = load('@tensorflow/tfjs-core');
load('@tensorflow/tfjs-backend-cpu');
const tl = load('@tensorflow/tfjs-layers');

const L = tl.layers;
const input = (...shape) => tl.input({shape});
const one = (layer, ...shape) => () => tl.sequential({layers: [layer(shape)]});
const chain = (shape, ...layers) => () => {
  const x = input(...shape);
  return tl.model({inputs: x, outputs: layers.reduce((y, layer) => layer.apply(y), x)});
};
const words = (...layers) => () => {
  const x = tl.input({shape: [6], dtype: 'int32'});
  return tl.model({inputs: x, outputs: layers.reduce((y, layer) => layer.apply(y), x)});
};
const joined = (layer, ...shapes) => () => {
  const inputs = shapes.map((shape) => input(...shape));
  return tl.model({inputs, outputs: layer().apply(inputs)});
};

const first = {dataFormat: 'channelsFirst'};
const conv = {filters: 5, kernelSize: 3, padding: 'same', useBias: true, biasInitializer: 'randomNormal'};
const bias = {biasInitializer: 'randomNormal'};
const cell = {units: 5, recurrentInitializer: 'randomNormal', biasInitializer: 'randomNormal'};
const picture = {...conv, recurrentInitializer: 'randomNormal', filters: 4};
const whole = {recurrentActivation: 'sigmoid'};

const MODELS = {
  dense: chain([7], L.dense({units: 6, activation: 'relu', ...bias}), L.dense({units: 3, activation: 'softmax'})),
  dense_of_sequences: chain([4, 7], L.dense({units: 6, activation: 'tanh', ...bias})),
  sequential: () => tl.sequential({layers: [
    L.conv2d({inputShape: [9, 10, 3], filters: 4, kernelSize: [3, 2], strides: [2, 1], activation: 'relu6', ...bias}),
    L.maxPooling2d({poolSize: 2}), L.batchNormalization({gammaInitializer: 'randomNormal'}), L.dropout({rate: 0.5}),
    L.flatten(), L.dense({units: 4}), L.activation({activation: 'softmax'}),
  ]}),
  conv1d: chain([11, 3], L.conv1d({...conv, strides: 2}), L.conv1d({...conv, padding: 'valid', dilationRate: 2})),
  conv2d: chain([9, 8, 3], L.conv2d({...conv, strides: 2}), L.conv2d({...conv, padding: 'valid', activation: 'elu'}),
    L.conv2d({...conv, dilationRate: 2})),
  conv2d_channels_first: chain([3, 9, 8], L.conv2d({...conv, ...first, strides: 2}),
    L.maxPooling2d({...first, poolSize: 2}), L.flatten(first)),
  depthwise: chain([9, 8, 3], L.depthwiseConv2d({kernelSize: 3, depthMultiplier: 2, strides: 2, ...bias})),
  separable: chain([9, 8, 3], L.separableConv2d({...conv, activation: 'relu'})),
  transposed: chain([4, 5, 3], L.conv2dTranspose({...conv, strides: 2}),
    L.conv2dTranspose({...conv, padding: 'valid', strides: [3, 2], kernelSize: 2})),
  transposed_valid: chain([4, 5, 3], L.conv2dTranspose({...conv, padding: 'valid', strides: 2, activation: 'sigmoid'})),
  pools: chain([9, 8, 3], L.maxPooling2d({poolSize: 3, strides: 2, padding: 'same'}),
    L.averagePooling2d({poolSize: [2, 3], strides: 1, padding: 'same'})),
  pools_of_rows: chain([12, 3], L.maxPooling1d({poolSize: 3, strides: 2, padding: 'same'}),
    L.averagePooling1d({poolSize: 2})),
  global_average: one((inputShape) => L.globalAveragePooling2d({inputShape}), 5, 6, 3),
  global_max: one((inputShape) => L.globalMaxPooling2d({inputShape, ...first}), 3, 5, 6),
  global_rows: () => {
    const x = input(5, 4);
    return tl.model({inputs: x, outputs: [L.globalMaxPooling1d().apply(x), L.globalAveragePooling1d().apply(x)]});
  },
  functions: () => {
    const x = input(12), names = ['elu', 'selu', 'relu', 'relu6', 'linear', 'sigmoid', 'hardSigmoid', 'softplus',
      'softsign', 'tanh', 'softmax', 'logSoftmax', 'swish', 'mish', 'gelu'];
    return tl.model({inputs: x, outputs: names.map((activation) => L.activation({activation}).apply(x))});
  },
  activations: () => {
    const x = input(4, 6);
    return tl.model({inputs: x, outputs: [L.reLU({maxValue: 0.5}), L.reLU(), L.leakyReLU({alpha: 0.2}), L.elu(),
      L.prelu({alphaInitializer: 'randomNormal'}), L.prelu({alphaInitializer: 'randomNormal', sharedAxes: [1]}),
      L.thresholdedReLU({theta: 0.3}), L.softmax({axis: -1})].map((layer) => layer.apply(x))});
  },
  normalisations: chain([4, 6], L.batchNormalization({movingMeanInitializer: 'randomNormal', scale: false}),
    L.layerNormalization({gammaInitializer: 'randomNormal', betaInitializer: 'randomNormal'}),
    L.layerNormalization({axis: [1, 2], center: false}), L.layerNormalization({axis: 1, epsilon: 0.1})),
  shapes: chain([4, 6], L.reshape({targetShape: [2, 4, 3]}), L.permute({dims: [3, 1, 2]}), L.flatten(),
    L.repeatVector({n: 3}), L.gaussianNoise({stddev: 1}), L.gaussianDropout({rate: 0.2}),
    L.reshape({targetShape: [-1, 2]})),
  pads: chain([5, 6, 2], L.zeroPadding2d({padding: [[1, 2], [0, 3]]}), L.cropping2D({cropping: [[0, 1], [2, 0]]}),
    L.zeroPadding2d({padding: 2})),
  pads_channels_first: chain([2, 5, 6], L.zeroPadding2d({padding: [1, 2], ...first}),
    L.cropping2D({cropping: 1, ...first})),
  upsampling: chain([4, 5, 2], L.upSampling2d({size: [2, 3]}),
    L.upSampling2d({size: [2, 2], interpolation: 'bilinear'})),
  rescaling: chain([7, 9, 3], L.rescaling({scale: 0.5, offset: -1})),
  add: joined(() => L.add(), [4, 6], [4, 6], [4, 6]),
  add_of_ranks: joined(() => L.add(), [4, 6], [6]),
  multiply: joined(() => L.multiply(), [4, 6], [4, 1]),
  average: joined(() => L.average(), [4, 6], [4, 6], [4, 6]),
  maximum: joined(() => L.maximum(), [4, 6], [4, 6]),
  minimum: joined(() => L.minimum(), [4, 6], [4, 6]),
  concatenate: joined(() => L.concatenate({axis: 1}), [4, 6], [3, 6]),
  dot_of_rows: joined(() => L.dot({axes: -1, normalize: true}), [6], [6]),
  dot: joined(() => L.dot({axes: [2, 1]}), [4, 6], [6, 5]),
  embedding: words(L.embedding({inputDim: 9, outputDim: 4}), L.flatten()),
  masked: words(L.embedding({inputDim: 9, outputDim: 4, maskZero: true}), L.lstm({...cell, returnSequences: true}),
    L.gru({...cell, goBackwards: true})),
  masked_both_ways: words(L.embedding({inputDim: 9, outputDim: 4, maskZero: true}), L.dropout({rate: 0.5}),
    L.bidirectional({layer: L.lstm(cell), mergeMode: 'sum'})),
  masking: chain([5, 3], L.masking({maskValue: 0}), L.simpleRNN(cell)),
  simple_rnn: chain([6, 3], L.simpleRNN({...cell, returnSequences: true}), L.simpleRNN({...cell, goBackwards: true})),
  gru: chain([6, 3], L.gru({...cell, ...whole, returnSequences: true}), L.gru({...cell, activation: 'relu'})),
  gru_backwards: chain([6, 3], L.gru({...cell, ...whole, returnSequences: true, goBackwards: true})),
  lstm: chain([6, 3], L.lstm({...cell, ...whole, returnSequences: true}), L.lstm({...cell, unitForgetBias: false})),
  lstm_states: () => {
    const x = input(6, 3);
    const [, ...states] = L.lstm({...cell, ...whole, returnState: true}).apply(x);
    return tl.model({inputs: x, outputs: L.lstm({...cell, ...whole}).apply(x, {initialState: states})});
  },
  bidirectional: chain([6, 3], L.bidirectional({layer: L.lstm({...cell, ...whole, returnSequences: true})}),
    L.bidirectional({layer: L.gru(cell), mergeMode: 'ave'})),
  time_distributed: chain([4, 6, 7, 2], L.timeDistributed({layer: L.conv2d(conv)}),
    L.timeDistributed({layer: L.flatten()}), L.timeDistributed({layer: L.dense({units: 3, ...bias})})),
  conv3d: chain([5, 6, 7, 3], L.conv3d({...conv, strides: 2}),
    L.conv3d({...conv, kernelSize: [2, 3, 1], activation: 'relu', dilationRate: [1, 2, 1]})),
  conv3d_valid: chain([6, 7, 6, 2], L.conv3d({...conv, padding: 'valid', strides: [2, 1, 1], kernelSize: [3, 1, 1]}),
    L.conv3d({...conv, padding: 'valid', kernelSize: [1, 3, 2]})),
  conv3d_channels_first: chain([3, 5, 6, 7], L.conv3d({...conv, ...first}), L.maxPooling3d({...first, poolSize: 2})),
  transposed3d: chain([3, 4, 3, 3], L.conv3dTranspose({...conv, strides: 2}),
    L.conv3dTranspose({...conv, padding: 'valid', strides: [3, 1, 2], kernelSize: 2})),
  transposed3d_valid: chain([3, 4, 3, 3], L.conv3dTranspose({...conv, padding: 'valid', strides: [2, 2, 1],
    activation: 'sigmoid'})),
  pools3d: chain([5, 7, 6, 3], L.maxPooling3d({poolSize: 3, strides: 2, padding: 'same'}),
    L.averagePooling3d({poolSize: [2, 3, 1], strides: 1, padding: 'same'})),
  conv_lstm: chain([4, 6, 5, 2], L.convLstm2d({...picture, returnSequences: true}),
    L.convLstm2d({...picture, padding: 'valid', strides: 2, recurrentActivation: 'sigmoid'})),
  conv_lstm_channels_first: chain([3, 2, 6, 5], L.convLstm2d({...picture, ...first, goBackwards: true})),
  cells: chain([6, 3], L.rnn({cell: L.lstmCell(cell), returnSequences: true}), L.rnn({cell: L.gruCell(cell)})),
  stacked_cells: chain([6, 3], L.rnn({cell: [L.lstmCell(cell), L.simpleRNNCell({...cell, units: 4}), L.gruCell(cell)],
    returnSequences: true, goBackwards: true})),
  stacked_lstm_cells: chain([6, 3], L.rnn({cell: L.stackedRNNCells({cells: [L.lstmCell(cell), L.lstmCell(cell)]})})),
  center_crop: chain([9, 8, 3], L.centerCrop({height: 4, width: 3})),
  center_crop_of_small: chain([5, 6, 3], L.centerCrop({height: 7, width: 3})),
  categories: words(L.categoryEncoding({numTokens: 9, outputMode: 'multiHot'})),
  categories_counted: words(L.categoryEncoding({numTokens: 9, outputMode: 'count'})),
  shared: () => {
    const a = input(4, 6), b = input(4, 6), dense = L.dense({units: 3, activation: 'tanh', ...bias});
    return tl.model({inputs: [a, b], outputs: L.concatenate().apply([dense.apply(a), dense.apply(b), dense.apply(a)])});
  },
  nested: () => {
    const x = input(6, 5, 2), inside = input(6, 5, 2);
    const y = L.conv2d({...conv, activation: 'relu'}).apply(inside);
    const model = tl.model({inputs: inside, outputs: [y, L.globalAveragePooling2d({}).apply(y)], name: 'inside'});
    const [image, row] = model.apply(x), [other] = model.apply(L.activation({activation: 'tanh'}).apply(x));
    const head = tl.sequential({layers: [L.dense({units: 4, inputShape: [5]}), L.dense({units: 2, ...bias})]});
    return tl.model({inputs: x, outputs: [L.add().apply([image, other]), head.apply(row)]});
  },
};

// As Teachable Machine writes its models: rows of layers in a row, the first of which begins with a graph of layers.
MODELS.rows_in_rows = () => {
  const x = tl.input({shape: [12, 12, 3], name: 'input_1'});
  const layers = [L.zeroPadding2d({padding: [[0, 1], [0, 1]]}), L.conv2d({...conv, filters: 8, strides: 2, useBias: false}),
    L.batchNormalization({movingMeanInitializer: 'randomNormal'}), L.reLU({maxValue: 6}),
    L.depthwiseConv2d({kernelSize: 3, padding: 'same', useBias: false}), L.batchNormalization({}), L.reLU({maxValue: 6})];
  const features = tl.model({inputs: x, outputs: layers.reduce((y, layer) => layer.apply(y), x), name: 'model1'});
  const pooled = tl.sequential({layers: [features, L.globalAveragePooling2d({})]});
  const head = tl.sequential({layers: [L.dense({units: 10, inputShape: [8], activation: 'relu', ...bias}),
    L.dense({units: 3, useBias: false, activation: 'softmax'})]});
  return tl.sequential({layers: [pooled, head]});
};

async function main() {
  for (const [name, make] of Object.entries(MODELS)) {
    const model = make(), beside = path.join(folder, name);
    model.setWeights(model.getWeights().map((w) => w.rank === 0 ? w : tf.randomUniform(w.shape, w.name.includes("variance") ? 0.2 : -0.6, 0.6, w.dtype)
      ));
    fs.mkdirSync(beside, {recursive: true});
    await model.save({save: async ({modelTopology, weightSpecs, weightData, ...others}) => {
      fs.writeFileSync(path.join(beside, 'weights.bin'), Buffer.from(tf.io.CompositeArrayBuffer.join(weightData)));
      const weightsManifest = [{paths: ['weights.bin'], weights: weightSpecs}];
      fs.writeFileSync(path.join(beside, 'model.json'),
        JSON.stringify({format: 'layers-model', modelTopology, weightsManifest, generatedBy: others.generatedBy}));
      return {modelArtifactsInfo: {dateSaved: new Date(), modelTopologyType: 'JSON'}};
    }});
  }
  process.exit(0);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});

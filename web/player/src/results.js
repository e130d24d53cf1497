// What a task's outputs mean, in pixels of the picture.

/** How each kind of `decode` in a package's header reads outputs. */
export const DECODERS = {
  detections(outputs, { output, keypoints }, place) {
    const { data, shape: [, most, width] } = outputs[output];
    const found = [];
    for (let row = 0; row < most && data[row * width + width - 1] > 0; row++) {
      found.push(detection(data.subarray(row * width, (row + 1) * width), keypoints, place));
    }
    return found;
  },

  categories(outputs, { scores, classes, labels }) {
    const places = outputs[classes].data;
    return Array.from(outputs[scores].data, (score, i) => ({ index: Number(places[i]), label: labels[places[i]] ?? "", score }));
  },

  mask(outputs, { output }) {
    const { data: values, shape: [, height, width] } = outputs[output];
    return [{ width, height, values }];
  },
};

function detection(row, names, place) {
  const [left, top, right, bottom] = row;
  const width = (right - left) * place.width;
  const height = (bottom - top) * place.height;
  const [x, y] = place.toImage((left + right) / 2, (top + bottom) / 2);
  const points = names.map((name, i) => [name, place.toImage(row[4 + 2 * i], row[5 + 2 * i])]);
  return {
    box: { left: x - width / 2, top: y - height / 2, width, height },
    score: Math.min(Math.max(row.at(-1), 0), 1),
    keypoints: Object.fromEntries(points),
  };
}

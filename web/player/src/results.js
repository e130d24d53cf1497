// What a task's outputs mean, in pixels of the picture.

const OBJECT = 6; // numbers of an object: left, top, right, bottom in 0..1 of the input, score, class

/** How each kind of `decode` in a package's header reads outputs; `numbers` are the task's, by name. */
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

  objects(outputs, { output, labels, most }, place, { min_score: [least] }) {
    const { data } = outputs[output];
    const rows = Array.from({ length: data.length / OBJECT }, (_, i) => data.subarray(OBJECT * i, OBJECT * (i + 1)));
    return best(rows.map((row) => {
      const { box, score } = detection(row.subarray(0, OBJECT - 1), [], place);
      return { box, score, index: row[OBJECT - 1], label: labels[row[OBJECT - 1]] ?? "" };
    }), least, most);
  },

  poses: (outputs, decode, place, { min_score: [least] }) => best(bodies(outputs, decode, place), least, decode.most),

  bodies(outputs, decode, place, { threshold: [threshold] }) {
    const [, rows, columns] = outputs[decode.part].shape;
    const across = middle(columns, place.size[0] / place.width);
    const down = middle(rows, place.size[1] / place.height);
    const [width, height] = [across.length, down.length];
    const values = scaled(outputs[decode.person], across, down, columns, rows).map((x) => 1 / (1 + Math.exp(-x)));
    const told = (map) => Uint8Array.from(values, (value, i) => {
      if (value < threshold) return 0;
      return map[Math.round(down[Math.floor(i / width)]) * columns + Math.round(across[i % width])];
    });
    const [parts, people] = [decode.part, decode.whose].map((name) => told(outputs[name].data));
    const found = bodies(outputs, decode, place).filter(({ score }) => score > 0);
    return [{ width, height, values, parts, people, names: decode.parts, bodies: found }];
  },

  vector: (outputs, { output }) => [{ values: outputs[output].data }],
};

/** Those that score enough, best first. */
function best(found, least, most) {
  return found.filter(({ score }) => score > 0 && score >= least).sort((a, b) => b.score - a.score).slice(0, most);
}

/** The bodies of a table of points in pixels of the input; those that are none score nothing. */
function bodies(outputs, { landmarks, confidences, scores, names }, place) {
  return Array.from(outputs[scores].data, (score, body) => {
    const first = body * names.length;
    const points = names.map((_, i) => {
      const [x, y] = outputs[landmarks].data.subarray(3 * (first + i));
      return place.toImage(x / place.ow, y / place.oh);
    });
    const [xs, ys] = [0, 1].map((axis) => points.map((point) => point[axis]));
    const [left, top] = [Math.min(...xs), Math.min(...ys)];
    return {
      box: { left, top, width: Math.max(...xs) - left, height: Math.max(...ys) - top },
      score,
      keypoints: Object.fromEntries(names.map((name, i) => [name, points[i]])),
      confidences: Object.fromEntries(names.map((name, i) => [name, outputs[confidences].data[first + i]])),
    };
  });
}

/** Places on a line of `count` cells, whose ends are the line's, of the `share` in its middle. */
function middle(count, share) {
  const length = Math.max(1, Math.round(count * share));
  return Array.from({ length }, (_, i) => (count - 1) * (0.5 + share * (length > 1 ? i / (length - 1) - 0.5 : 0)));
}

/** A map between its cells, at places on a finer grid of `columns` and `rows` with the same corners. */
function scaled({ data, shape: [, height, width] }, across, down, columns, rows) {
  const at = (places, cells, count) => places.map((place) => (place * (cells - 1)) / Math.max(1, count - 1));
  const [xs, ys] = [at(across, width, columns), at(down, height, rows)];
  const values = new Float32Array(xs.length * ys.length);
  ys.forEach((y, j) => xs.forEach((x, i) => {
    const [left, top] = [Math.floor(x), Math.floor(y)];
    const line = (row) => {
      const first = Math.min(row, height - 1) * width;
      return data[first + left] * (left + 1 - x) + data[first + Math.min(left + 1, width - 1)] * (x - left);
    };
    values[j * xs.length + i] = line(top) * (top + 1 - y) + line(top + 1) * (y - top);
  }));
  return values;
}

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

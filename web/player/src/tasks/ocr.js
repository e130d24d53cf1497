// Text in pictures: one model finds lines, a second says which are upside down, a third reads them. As tasks/text_reader.py.

import { isPicture } from "../pictures.js";
import { cutOf, pageOf, planesOf, turnedPicture } from "./ocr_pixels.js";
import { boxOf, foundQuads, readingOrder, toEven, turned, upright } from "./ocr_regions.js";

const STEP = 32; // pixels: sides of the detector's input are multiples
const [LINE_HEIGHT, SHORTEST_LINE, LONGEST_LINE] = [48, 320, 3200]; // pixels of the reader's input
const [TURN_WIDTH, TURNED_FROM] = [192, 0.9]; // pixels of the classifier's input; probability of a line that is upside down
const SURE = 0.9; // score from which a line is not read the other way round as well
const IMAGENET = { means: [0.485, 0.456, 0.406], deviations: [0.229, 0.224, 0.225] };
const SIGNED = { means: [0.5, 0.5, 0.5], deviations: [0.5, 0.5, 0.5] };

export const ocr = {
  takes: isPicture,

  async found(model, given, { min_score: [least], min_box_score: [leastBox], most_side: [mostSide] }) {
    const { detector } = model.parts;
    const { mask, sums } = model.facts.decode;
    const picture = model.pixels(given);
    const [page, black] = pageOf(picture);
    const scale = Math.min(1, mostSide / Math.max(page.width, page.height));
    const [width, height] = [page.width, page.height].map((side) => Math.max(toEven(Math.trunc(side * scale) / STEP), 1) * STEP);
    const outputs = await seenBy(detector, planesOf(page, width, height, width, IMAGENET), [1, 3, height, width]);
    const quads = foundQuads(outputs[mask], outputs[sums].data, [page.width, page.height], leastBox);
    const letters = ["", ...(await model.file.json("files/letters")), " "];
    const lines = [];
    for (const quad of quads) {
      const line = await read(model, letters, cutOf(page, upright(quad)), quad);
      const told = Array.from(line.text).length;
      if (2 * Array.from(line.text.replace(/\s/gu, "")).length > told && line.score >= least) lines.push(line);
    }
    const order = readingOrder(lines.map(({ quad }) => quad)).map((place) => lines[place]);
    return order.map(({ text, score, quad }) => {
      const moved = quad.map(([x, y]) => [x, black ? Math.min(Math.max(y - black, 0), picture.height) : y]);
      return { text, score, quad: moved, box: boxOf(moved) };
    });
  },
};

async function seenBy(model, data, shape) {
  return model.run({ [model.inputs[0].name]: { data, shape } });
}

/** The line of text in a cut. One that reads badly is read upside down too: the better reading counts. */
async function read(model, letters, pixels, quad) {
  const { classifier } = model.parts;
  if (classifier) {
    const [{ data }] = Object.values(await seenBy(classifier, ...lineOf(pixels, quad, TURN_WIDTH)));
    if (data[0] > TURNED_FROM) quad = turned(quad, 2);
  }
  const line = await along(model, letters, pixels, quad);
  if (line.score >= SURE) return line;
  const other = await along(model, letters, pixels, turned(quad, 2));
  return other.score > line.score ? other : line;
}

async function along(model, letters, pixels, quad) {
  const { decode } = model.facts;
  const width = Math.trunc(LINE_HEIGHT * Math.max(SHORTEST_LINE / LINE_HEIGHT, aspect(pixels, quad)));
  const [data, shape] = lineOf(pixels, quad, Math.min(width, LONGEST_LINE));
  const outputs = await model.infer({ [model.inputs[0].name]: { data, shape } });
  const classes = Array.from(outputs[decode.classes].data, Number);
  const places = classes.flatMap((each, i) => (each && (i === 0 || each !== classes[i - 1]) ? [i] : []));
  const score = places.reduce((sum, i) => sum + outputs[decode.scores].data[i], 0) / Math.max(places.length, 1);
  return { text: places.map((i) => letters[classes[i]]).join(""), score, quad };
}

/** A model's input for a line in so many columns, and its shape. */
function lineOf(pixels, quad, width) {
  const used = Math.min(Math.ceil(LINE_HEIGHT * aspect(pixels, quad)), width);
  const planes = planesOf(turnedPicture(pixels, quarters(quad)), width, LINE_HEIGHT, used, SIGNED);
  return [planes, [1, 3, LINE_HEIGHT, width]];
}

/** By how many quarters of a circle the text is turned with the clock in its cut, which is that of `upright`. */
const quarters = (quad) => upright(quad).findIndex(([x, y]) => x === quad[0][0] && y === quad[0][1]);

/** Width over height of a line's cut, as the text runs. */
function aspect({ width, height }, quad) {
  return quarters(quad) % 2 ? height / width : width / height;
}

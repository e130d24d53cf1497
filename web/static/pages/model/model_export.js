// The graph of a model as a picture: SVG as it is drawn on the page, and PNG made of that.

import { download, svg } from "../../ui/dom.js";
import { FONTS } from "./model_drawing.js";
import { farLine } from "./model_paint.js";

const MARGIN = 16;
const PNG_SCALE = 2; // pixels for each of the drawing's, so that texts are sharp in print
const PNG_SIDE = 16_384; // that canvases of Chromium, Firefox and Safari all can have (MDN, "Maximum canvas size")
const HEAD = 7; // of an arrow

/** The line of an edge as SVG's path data. */
function pathOf([from, to], bent, boxes) {
  const [a, b] = [boxes[from], boxes[to]];
  if (!bent) {
    const [x0, y0, x1, y1] = [a.x, a.y + a.height / 2, b.x, b.y - b.height / 2];
    return `M${x0} ${y0}C${farLine(x0, y0, x1, y1).join(" ")}`;
  }
  const last = bent.length - 2;
  let path = `M${bent[0]} ${bent[1]}`;
  for (let at = 2; at < last; at += 2) {
    const [x, y, nextX, nextY] = bent.slice(at, at + 4);
    path += at + 2 === last ? `Q${x} ${y} ${nextX} ${nextY}` : `Q${x} ${y} ${(x + nextX) / 2} ${(y + nextY) / 2}`;
  }
  return last === 2 ? `${path}L${bent[2]} ${bent[3]}` : path;
}

function lineOf(edge, bent, boxes, colours) {
  const { x, y, height } = boxes[edge[1]];
  const [tipX, tipY] = bent ? bent.slice(-2) : [x, y - height / 2];
  const line = svg("path", { d: pathOf(edge, bent, boxes), fill: "none", "stroke-width": 1.1, ...(bent ? {} : { "stroke-dasharray": "6 5" }) });
  const head = svg("path", { d: `M${tipX} ${tipY}l${-HEAD / 2} ${-HEAD}h${HEAD}z`, stroke: "none" });
  return svg("g", { stroke: colours.quiet, fill: colours.quiet, opacity: bent ? 0.6 : 0.3 }, line, head);
}

function boxOf(box, colours) {
  const { x, y, width, height, kind, title, line } = box;
  const own = colours.ops[box.colour] ?? colours.quiet;
  const place = { x: x - width / 2, y: y - height / 2, width, height, rx: kind === "op" ? 7 : height / 2 };
  const text = (content, font, down, fill) => {
    const [, weight, size, family] = /^(?:(\d+) )?(\S+) (.*)$/.exec(font); // as attributes: the page's policy allows no styles within elements
    const made = svg("text", { x, y: y + down, fill, "text-anchor": "middle", "font-size": size, "font-family": family, ...(weight && { "font-weight": weight }) });
    made.textContent = content;
    return made;
  };
  const isNode = kind === "op";
  const tint = isNode ? [svg("rect", { ...place, fill: own, "fill-opacity": 0.17 })] : [];
  return svg("g", {},
    svg("rect", { ...place, fill: colours.card, stroke: own, "stroke-width": 1.2 }), ...tint,
    text(title, isNode ? FONTS.title : FONTS.line, isNode ? -3 : 4, isNode ? colours.ink : colours.quiet),
    ...(line ? [text(line, FONTS.line, 13, colours.quiet)] : []));
}

/** A drawing whose boxes have places as {text, width, height} of an SVG file, in these colours. */
export function svgOf({ boxes, edges, bends }, colours) {
  const reach = boxes.flatMap(({ x, y, width, height }) => [[x - width / 2, y - height / 2], [x + width / 2, y + height / 2]]);
  edges.forEach(([from, to], at) => {
    if (bends[at]) for (let i = 0; i < bends[at].length; i += 2) reach.push([bends[at][i], bends[at][i + 1]]);
    else reach.push(farLine(boxes[from].x, boxes[from].y, boxes[to].x, boxes[to].y).slice(0, 2));
  });
  const edge = (axis, better) => reach.reduce((found, point) => better(found, point[axis]), reach[0][axis]);
  const [left, top] = [edge(0, Math.min) - MARGIN, edge(1, Math.min) - MARGIN];
  const [width, height] = [edge(0, Math.max) + MARGIN - left, edge(1, Math.max) + MARGIN - top].map(Math.ceil);
  const made = svg("svg", { viewBox: `${left} ${top} ${width} ${height}`, width, height },
    svg("rect", { x: left, y: top, width, height, fill: colours.card }),
    ...edges.map((one, at) => lineOf(one, bends[at], boxes, colours)),
    ...boxes.map((box) => boxOf(box, colours)));
  return { text: new XMLSerializer().serializeToString(made), width, height };
}

/** Hands the drawing out as a file of this kind, "svg" or "png". Throws what the browser says of a picture that it cannot make. */
export async function saveGraph(name, drawing, colours, kind) {
  const { text, width, height } = svgOf(drawing, colours);
  const file = `${name.replace(/[^\w.-]+/g, "_")}.${kind}`;
  const vectors = new Blob([text], { type: "image/svg+xml" });
  if (kind === "svg") return download(file, [vectors], vectors.type);
  const image = new Image();
  image.src = URL.createObjectURL(vectors);
  try {
    await image.decode();
    const scale = Math.min(PNG_SCALE, PNG_SIDE / Math.max(width, height));
    const canvas = new OffscreenCanvas(Math.round(width * scale), Math.round(height * scale));
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    download(file, [await canvas.convertToBlob()], "image/png");
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

// Results of the kind "detections": boxes with scores and keypoints (webinfer/tasks/base.py, ResultSchema).

const BOX = "#36e0c8";
const POINT = "#ffd447";
const EDGE = "rgb(0 0 0 / 65%)"; // under every line, so that it shows on any picture

/** Where a picture of this size lies in an element that shows it with `object-fit: contain`. */
function contained(element, width, height) {
  const scale = Math.min(element.clientWidth / width, element.clientHeight / height);
  return { scale, left: (element.clientWidth - width * scale) / 2, top: (element.clientHeight - height * scale) / 2 };
}

/** Draws detections over a picture; `picture` is {width, height} in the pixels that they are given in. */
export function draw(canvas, picture, found, mirrored) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  if (!picture?.width || !found.length) return;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const { scale, left, top } = contained(canvas, picture.width, picture.height);
  const x = (value) => left + (mirrored ? picture.width - value : value) * scale;
  const y = (value) => top + value * scale;
  for (const { box, score, keypoints } of found) {
    const edge = x(mirrored ? box.left + box.width : box.left);
    drawBox(context, edge, y(box.top), box.width * scale, box.height * scale);
    for (const [px, py] of Object.values(keypoints)) drawPoint(context, x(px), y(py), Math.max(2.5, box.width * scale * 0.024));
    drawLabel(context, `${Math.round(score * 100)} %`, edge, y(box.top), canvas);
  }
}

/** A detection in words: its score, and where it lies. */
export function describe({ box, score }) {
  const [left, top, width, height] = [box.left, box.top, box.width, box.height].map(Math.round);
  return { value: `${(score * 100).toFixed(1)} %`, detail: `${width} × ${height} at ${left}, ${top}` };
}

function drawBox(context, left, top, width, height) {
  context.beginPath();
  context.roundRect(left, top, width, height, Math.min(8, width / 8));
  context.lineWidth = 5;
  context.strokeStyle = EDGE;
  context.stroke();
  context.lineWidth = 2.5;
  context.strokeStyle = BOX;
  context.stroke();
}

function drawPoint(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fillStyle = POINT;
  context.fill();
  context.lineWidth = 1.25;
  context.strokeStyle = EDGE;
  context.stroke();
}

function drawLabel(context, text, left, top, canvas) {
  context.font = "600 13px system-ui, sans-serif";
  const width = context.measureText(text).width + 12;
  const x = Math.min(Math.max(0, left), canvas.clientWidth - width);
  const y = top >= 24 ? top - 24 : top + 4; // inside the box where there is no room above it
  context.beginPath();
  context.roundRect(x, y, width, 20, 5);
  context.fillStyle = BOX;
  context.fill();
  context.fillStyle = "#06302b";
  context.textBaseline = "middle";
  context.fillText(text, x + 6, y + 10.5);
}

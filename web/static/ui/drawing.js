// Drawings of sounds, texts and files. They follow the page's theme.

const LIGHT = { ground: "#ffffff", ink: "#14191f", quiet: "#55606c", line: "#c3ccd5", accent: "#0b7f78", soft: "rgb(11 127 120 / 16%)" };
const DARK = { ground: "#12161a", ink: "#e8ecf0", quiet: "#9aa6b2", line: "#3a434d", accent: "#4fd1c0", soft: "rgb(79 209 192 / 20%)" };

/** The colours of a drawing. */
export const inks = () => (matchMedia("(prefers-color-scheme: dark)").matches ? DARK : LIGHT);

/** Fills the whole drawing with its ground. */
export function coverDrawing({ context, width, height }) {
  context.fillStyle = inks().ground;
  context.fillRect(0, 0, width, height);
}

/** Sets the font of what is written next: `size` in pixels of the page. */
export function setFont(context, size, weight = 500, family = "system-ui, sans-serif") {
  context.font = `${weight} ${size}px ${family}`;
  context.textBaseline = "middle";
}

/** The text, or as much of its beginning as is `most` wide, with an ellipsis. */
export function fitted(context, text, most) {
  if (context.measureText(text).width <= most) return text;
  let count = text.length;
  while (count > 1 && context.measureText(`${text.slice(0, count)}…`).width > most) count -= Math.max(1, count >> 4);
  return `${text.slice(0, count)}…`;
}

/** A bar of `part` of its width over its ground, with round ends. */
export function drawBar(context, x, y, width, height, part, { line, accent } = inks()) {
  for (const [colour, wide] of [[line, width], [accent, Math.max(height / 2, width * Math.min(1, Math.max(0, part)))]]) {
    context.fillStyle = colour;
    context.beginPath();
    context.roundRect(x, y, wide, height, height / 2);
    context.fill();
  }
}

// A graph on a canvas: drawn, panned, zoomed, walked through by keyboard. Only what is in view is drawn.

import { paint, palette, TEXTS } from "./model_paint.js";

const ZOOM = { least: 0.02, most: 2.5, first: 0.95, step: 1.25 };

/** `on.select(box)` hears which box was chosen (-1 for none), `on.open()` that its details are wanted. */
export class GraphView {
  #canvas;
  #on;
  #drawing = null;
  #colours;
  #view = { x: 0, y: 0, zoom: 1 }; // the graph's point in the middle of the canvas
  #selected = -1;
  #found = null; // Set of boxes that a search found
  #heat = null; // Map: box -> 0..1
  #marks = new Map(); // box -> "refused" | "differs" | "removed" | "added"
  #pointers = new Map();
  #moved = 0;
  #frame = 0;

  constructor(canvas, on) {
    this.#canvas = canvas;
    this.#on = on;
    const repaint = () => {
      this.#colours = palette(canvas.parentElement.querySelector("[data-probe]"));
      this.#draw();
    };
    repaint();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    new ResizeObserver(() => this.#draw()).observe(canvas);
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    for (const type of ["pointerdown", "pointermove", "pointerup", "pointercancel"]) canvas.addEventListener(type, (event) => this.#pointer(event));
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Shows a drawing whose boxes have places; its top first, or all of it if that can be read. */
  show(drawing) {
    this.#drawing = drawing;
    this.#selected = -1;
    [this.#found, this.#heat, this.#marks] = [null, null, new Map()];
    const { left, right, top, bottom } = this.#bounds();
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const zoom = Math.min(ZOOM.first, Math.max(0.5, (width - 32) / (right - left), (height - 32) / (bottom - top)));
    const first = drawing.boxes.find(({ y, height: own }) => y - own / 2 <= top + 1);
    const fits = (right - left) * zoom <= width;
    const tall = (bottom - top) * zoom > height - 32;
    this.#look(fits ? (left + right) / 2 : first.x, tall ? top + (height / 2 - 16) / zoom : (top + bottom) / 2, zoom);
  }

  /** Shows nothing. */
  clear() {
    this.#drawing = null;
    this.#canvas.getContext("2d").reset();
  }

  /** All of it. */
  fit() {
    if (!this.#drawing) return;
    const { left, right, top, bottom } = this.#bounds();
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    this.#look((left + right) / 2, (top + bottom) / 2, Math.min((width - 24) / (right - left), (height - 24) / (bottom - top), 1));
  }

  /** Nearer (1) or farther (-1). */
  zoom(direction) {
    if (!this.#drawing) return;
    const { x, y, zoom } = this.#view;
    this.#look(x, y, zoom * ZOOM.step ** direction);
  }

  /** Selects a box, and shows where it is. */
  select(box, { center = true } = {}) {
    if (!this.#drawing) return;
    this.#selected = box;
    if (box >= 0 && center) this.#reveal(this.#drawing.boxes[box]);
    this.#draw();
  }

  /** Boxes that a search found, the others step back; null for no search. */
  found(boxes) {
    this.#found = boxes;
    this.#draw();
  }

  /** A share of the longest time for each box; null for none. */
  heat(shares) {
    this.#heat = shares;
    this.#draw();
  }

  /** Boxes that something is the matter with. */
  mark(marks) {
    this.#marks = marks;
    this.#draw();
  }

  // ----- the view

  #bounds() {
    const { boxes } = this.#drawing;
    const least = (value) => boxes.reduce((found, box) => Math.min(found, value(box)), Infinity);
    const [left, top] = [least(({ x, width }) => x - width / 2), least(({ y, height }) => y - height / 2)];
    return { left, top, right: -least(({ x, width }) => -x - width / 2), bottom: -least(({ y, height }) => -y - height / 2) };
  }

  #look(x, y, zoom) {
    this.#view = { x, y, zoom: Math.min(ZOOM.most, Math.max(ZOOM.least, zoom)) };
    this.#draw();
  }

  #reveal({ x, y, width, height }) {
    const { zoom, ...view } = this.#view;
    const own = Math.max(zoom, TEXTS * 1.6);
    const [w, h] = [this.#canvas.clientWidth / 2 / own, this.#canvas.clientHeight / 2 / own];
    const outside = Math.abs(x - view.x) > w - width || Math.abs(y - view.y) > h - height * 1.5;
    if (own !== zoom || outside) this.#look(x, y, own);
  }

  #toGraph(event) {
    const { left, top, width, height } = this.#canvas.getBoundingClientRect();
    const { x, y, zoom } = this.#view;
    return [x + (event.clientX - left - width / 2) / zoom, y + (event.clientY - top - height / 2) / zoom];
  }

  #wheel(event) {
    if (!this.#drawing) return;
    const { x, y, zoom } = this.#view;
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const [px, py] = this.#toGraph(event);
      const next = Math.min(ZOOM.most, Math.max(ZOOM.least, zoom * Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.004))));
      return this.#look(px + ((x - px) * zoom) / next, py + ((y - py) * zoom) / next, next);
    }
    const { top, bottom } = this.#bounds();
    const step = (event.deltaMode ? 24 : 1) / zoom;
    const next = y + event.deltaY * step;
    const half = this.#canvas.clientHeight / 2 / zoom;
    if (event.deltaY > 0 ? y + half > bottom + 40 : y - half < top - 40) return; // the page scrolls on
    event.preventDefault();
    this.#look(x + event.deltaX * step, next, zoom);
  }

  #pointer(event) {
    if (!this.#drawing) return;
    const known = this.#pointers.get(event.pointerId);
    if (event.type === "pointerdown") {
      this.#canvas.setPointerCapture(event.pointerId);
      this.#pointers.set(event.pointerId, event);
      if (this.#pointers.size === 1) this.#moved = 0;
    } else if (event.type === "pointermove" && known) {
      this.#drag(event, known);
      this.#pointers.set(event.pointerId, event);
    } else if (known) {
      this.#pointers.delete(event.pointerId);
      if (event.type === "pointerup" && this.#moved < 5) this.#choose(this.#boxAt(...this.#toGraph(event)));
    }
  }

  #drag(event, known) {
    const { x, y, zoom } = this.#view;
    this.#moved += Math.abs(event.clientX - known.clientX) + Math.abs(event.clientY - known.clientY);
    const other = [...this.#pointers.values()].find(({ pointerId }) => pointerId !== event.pointerId);
    const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
    const share = other ? 0.5 : 1;
    const next = other ? (zoom * apart(event)) / apart(known) : zoom;
    this.#look(x - (share * (event.clientX - known.clientX)) / zoom, y - (share * (event.clientY - known.clientY)) / zoom, next);
  }

  #boxAt(px, py) {
    return this.#drawing.boxes.findIndex(({ x, y, width, height }) => Math.abs(px - x) <= width / 2 && Math.abs(py - y) <= height / 2);
  }

  #choose(box) {
    this.#selected = box;
    this.#draw();
    this.#on.select(box);
  }

  // ----- the keyboard: arrows follow edges and go to the box beside

  #key(event) {
    if (!this.#drawing || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = {
      ArrowDown: () => this.#step((from, to) => from === this.#selected && to),
      ArrowUp: () => this.#step((from, to) => to === this.#selected && from),
      ArrowLeft: () => this.#beside(-1),
      ArrowRight: () => this.#beside(1),
      Home: () => this.#go(0),
      End: () => this.#go(this.#drawing.boxes.length - 1),
      "+": () => this.zoom(1),
      "=": () => this.zoom(1),
      "-": () => this.zoom(-1),
      0: () => this.fit(),
      Enter: () => this.#selected >= 0 && this.#on.open(),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  #go(box) {
    this.select(box);
    this.#on.select(box);
  }

  #step(next) {
    if (this.#selected < 0) return this.#go(0);
    for (const [from, to] of this.#drawing.edges) {
      const found = next(from, to);
      if (found !== false) return this.#go(found);
    }
  }

  #beside(side) {
    const { boxes } = this.#drawing;
    const own = boxes[this.#selected];
    if (!own) return this.#go(0);
    const rest = boxes.map((box, at) => [at, (box.x - own.x) * side, Math.abs(box.y - own.y)]);
    const near = rest.filter(([at, across, down]) => at !== this.#selected && across > 1 && down < 120).sort((a, b) => a[1] + a[2] - b[1] - b[2]);
    if (near.length) this.#go(near[0][0]);
  }

  // ----- drawing

  #draw() {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#drawing && this.#paint());
  }

  #paint() {
    const [found, heat, marks] = [this.#found, this.#heat, this.#marks];
    paint(this.#canvas, this.#drawing, this.#view, this.#colours, { selected: this.#selected, found, heat, marks });
  }
}

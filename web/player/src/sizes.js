// Sizes that a package leaves open: its plans hold for kinds of sizes (regimes), and are bound to sizes by evaluating
// expressions. Their form is defined in web/python/webinfer/graph/stored_trace.py and backends/wasm/sized_words.py.

import { PlayerError, whole } from "./errors.js";
import { boundTensors } from "./tensors.js";

const ALIGNMENT = 16; // bytes
const [LEAST_STEP, LEAST_RUN, SHARE, MOST_SHARES] = [60_000, 2_000_000, 500_000, 1024]; // as backends/wasm/sharing.py has them

function refuse(what) {
  throw new PlayerError("package", `the package breaks its form: ${what}`);
}

/** A number from `least` up to but not `limit`. */
export function within(value, limit, least = 0) {
  if (!Number.isSafeInteger(value) || value < least || value >= limit) refuse(`it has ${String(value).slice(0, 40)} where a number below ${limit} belongs`);
  return value;
}

/** The sizes of inputs, what follows them, and for which of them a plan holds. */
export class Sizes {
  constructor({ symbols, atoms, guards, values }) {
    this.symbols = symbols.map(String);
    this.count = values.length;
    const poly = (rows, known) => rows.map(([factor, ...parts]) => [within(factor, 2 ** 53, -(2 ** 53)), ...parts.map((part) => within(part, known))]);
    const all = symbols.length + atoms.length;
    this.atoms = atoms.map(([kind, a, b], i) => {
      if (kind !== "//" && kind !== "min") refuse(`a size is computed as ${kind}`);
      return [kind === "min", poly(a, symbols.length + i), poly(b, symbols.length + i)];
    });
    this.guards = guards.map(([rows, kind, answer]) => {
      if (kind !== "==" && kind !== ">") refuse(`a plan holds while ${kind}`);
      return [poly(rows, all), kind === ">", Boolean(answer)];
    });
    this.values = values.map((rows) => poly(rows, all));
  }

  /** Whether the plan holds for sizes in the order of the symbols. */
  holds(sizes) {
    if (sizes.length !== this.symbols.length) return false;
    const known = this.known(sizes);
    return known.every(Number.isSafeInteger) && this.guards.every(([rows, above, answer]) => {
      const value = sum(rows, known);
      return (above ? value > 0 : value === 0) === answer;
    });
  }

  /** The values of the expressions. */
  evaluate(sizes) {
    const known = this.known(sizes);
    return this.values.map((rows) => {
      const value = sum(rows, known);
      if (!Number.isSafeInteger(value)) throw new PlayerError("input", `sizes ${sizes.join(", ")} are too large`);
      return value;
    });
  }

  /** The sizes, and the divisions and minimums behind them. Without rounding: below 2^53 all steps are exact. */
  known(sizes) {
    const known = [...sizes];
    for (const [least, a, b] of this.atoms) {
      const [over, under] = [sum(a, known), sum(b, known)];
      const rest = ((over % under) + under) % under;
      known.push(least ? Math.min(over, under) : (over - rest) / under);
    }
    return known;
  }

  /** Takes the shapes of inputs and outputs. */
  follow([inputs, outputs], tensors) {
    if (inputs.length !== tensors.inputs.length || outputs.length !== tensors.outputs.length) refuse("a plan with other inputs or outputs");
    this.ends = { inputs: inputs.map((shape) => shape.map((size) => this.number(size))), outputs: outputs.map((shape) => shape.map((size) => this.number(size))) };
  }

  /** Inputs and outputs for these values. */
  tensors(rows, found) {
    return boundTensors(rows, (key) => this.ends[key].map((shape) => shape.map((size) => whole(at(size, found)))));
  }

  /** A number, or the place of an expression in a list, as a function of the expressions' values. */
  number(word) {
    if (!Array.isArray(word)) return within(word, 2 ** 53, -1);
    return [within(word[0], this.count)];
  }
}

const sum = (rows, known) => rows.reduce((total, [factor, ...parts]) => total + parts.reduce((product, part) => product * known[part], factor), 0);
/** A number, or the value of the expression at a place. */
export const at = (number, found) => (Array.isArray(number) ? found[number[0]] : number);

/** The words of one regime on the processor; `text` are those in memory, of the plan's own hint. */
export class SizedWords {
  constructor(facts, tensors, spare) {
    const { first, count, blocks, program } = facts;
    this.sizes = new Sizes(facts.sizes);
    this.program = program.map(whole);
    this.first = whole(first);
    this.count = whole(count);
    this.spare = whole(spare);
    const number = (word) => this.sizes.number(word);
    const expression = (word) => within(word, this.sizes.count);
    const place = (word) => within(word, count);
    const block = (word) => within(word, blocks.length);
    this.blocks = blocks.map(([begin, end, nbytes]) => ({ begin: within(begin, 2 ** 31, -1), end: within(end, 2 ** 31, -1), need: number(nbytes), room: 0, address: -1 }));
    for (const key of ["plain", "floats"]) this[key] = facts[key].map(([word, i]) => [place(word), expression(i)]);
    this.wide = facts.wide.map(([word, i]) => [place(word + 1) - 1, expression(i)]);
    this.offsets = facts.offsets.map(([word, own, i]) => [place(word), block(own), expression(i)]);
    this.pointers = facts.pointers.map(([word, own, offset]) => [place(word), block(own), whole(offset)]);
    this.shares = facts.shares.map(place);
    this.nodes = facts.nodes;
    this.units = facts.units.map(number);
    this.works = new Map(facts.works.map(([node, work]) => [node, number(work)]));
    if (this.shares.length && (this.shares.length !== this.nodes.length || this.nodes.length !== this.units.length || this.nodes.some((node) => !this.works.has(node)))) refuse("shares of other steps");
    this.ends = {};
    for (const key of ["inputs", "outputs"]) {
      if (facts[key].length !== tensors[key].length) refuse(`a plan with other ${key}`);
      this.ends[key] = facts[key].map(([own, offset]) => [within(own, blocks.length, -1), number(offset)]);
    }
    this.sizes.follow(facts.shapes, tensors);
  }

  addresses(key, found) {
    return this.ends[key].map(([own, offset]) => (own < 0 ? 0 : this.blocks[own].address) + at(offset, found));
  }

  /** Whether a tensor has no room where it lies. */
  outgrown(found) {
    return this.blocks.some(({ need, room, address }) => address < 0 || at(need, found) > room);
  }

  /** Gives blocks addresses from `base` on, those that live at one time apart; the bytes that all take. */
  layOut(found, base) {
    for (const block of this.blocks) {
      const need = whole(at(block.need, found));
      block.room = Math.max(block.room, Array.isArray(block.need) ? Math.ceil((need * 5) / 4) : need); // a quarter more, as the engine
    }
    const span = ({ room }) => Math.ceil((room + this.spare) / ALIGNMENT) * ALIGNMENT;
    const placed = [];
    let total = 0;
    for (const block of [...this.blocks].sort((a, b) => span(b) - span(a) || a.begin - b.begin)) {
      let [best, bestGap, end] = [-1, Infinity, 0];
      for (const other of placed) {
        if (other.end < block.begin || block.end < other.begin) continue;
        const gap = other.address - end;
        if (gap >= span(block) && gap < bestGap) [best, bestGap] = [end, gap];
        end = Math.max(end, other.address + span(other));
      }
      block.address = best < 0 ? end : best;
      total = Math.max(total, block.address + span(block));
      const after = placed.findIndex((other) => other.address > block.address);
      placed.splice(after < 0 ? placed.length : after, 0, block);
    }
    for (const block of this.blocks) block.address += base;
    return total;
  }

  /** Puts the words for these values into `words`, a copy of the text. */
  fill(words, found) {
    const floats = new Float32Array(words.buffer);
    for (const [place, i] of this.plain) words[place] = found[i];
    for (const [place, i] of this.wide) [words[place], words[place + 1]] = [found[i], Math.floor(found[i] / 2 ** 32)];
    for (const [place, i] of this.floats) floats[place] = found[i];
    for (const [place, own, i] of this.offsets) words[place] = this.blocks[own].address + found[i];
    for (const [place, own, offset] of this.pointers) words[place] = this.blocks[own].address + offset;
    if (this.shares.length) sharesOf(this, found).forEach((share, i) => (words[this.shares[i]] = share));
    return words;
  }
}

const KINDS = { I: "setUint32", i: "setInt32", f: "setFloat32" }; // of words, as Python's struct has them
const WIDE = { Q: "setBigUint64", q: "setBigInt64" };

/** Bytes of numbers in Python's struct layout, "<" and letters with counts before them. */
function packed(layout, numbers) {
  if (!/^<(\d*[IifqQ])*$/.test(layout)) refuse(`numbers laid out as ${layout}`);
  const letters = [...layout.matchAll(/(\d*)([IifqQ])/g)].flatMap(([, count, letter]) => Array(count === "" ? 1 : Number(count)).fill(letter));
  if (letters.length !== numbers.length) refuse(`${numbers.length} numbers laid out as ${layout}`);
  const bytes = new Uint8Array(letters.reduce((total, letter) => total + (WIDE[letter] ? 8 : 4), 0));
  const view = new DataView(bytes.buffer);
  letters.reduce((place, letter, i) => {
    if (WIDE[letter]) view[WIDE[letter]](place, BigInt(numbers[i]), true);
    else view[KINDS[letter]](place, numbers[i], true);
    return place + (WIDE[letter] ? 8 : 4);
  }, 0);
  return bytes;
}

/** A program of a GPU whose sizes are open. */
export class SizedProgram {
  constructor({ open, buffers, dispatches, prepare, uniforms }, tensors, limits) {
    this.sizes = new Sizes(open.sizes);
    this.sizes.follow(open.shapes, tensors);
    this.limit = Math.min(limits.maxBufferSize, limits.maxStorageBufferBindingSize);
    const number = (word) => this.sizes.number(word);
    const buffer = (word) => within(word, buffers.length);
    this.buffers = buffers.map(whole);
    this.prepare = prepare;
    this.bindings = dispatches.slice(prepare).map((row) => row[2]);
    if (open.steps.length !== this.bindings.length) refuse("sizes of other dispatches");
    this.steps = open.steps.map(([words, groups, regions], i) => {
      const parameters = this.bindings[i].at(-1);
      for (const [place, kind] of words) if (!KINDS[kind] || parameters[1] + 4 * whole(place) + 4 > uniforms.length / 2) refuse("a parameter");
      if (groups.length !== 3 || regions.length > this.bindings[i].length) refuse("what a dispatch is given");
      return [
        words.map(([place, kind, i]) => [parameters[1] + 4 * place, kind, number([i])]), groups.map(number),
        regions.map(([own, ...span]) => [buffer(own), ...span.map(number)]),
      ];
    });
    this.needs = open.needs.map(([own, need]) => [buffer(own), number(need)]);
    this.elements = open.elements.map(([own, layout, row]) => [buffer(own), layout, row.map(number)]);
    this.results = open.results.map(([own, offset]) => [buffer(own), number(offset)]);
  }

  /** What changes for these values: {sizes: of buffers made anew, steps} for Program.rebind, and more to write. */
  changes(found, uniforms) {
    const needs = new Map();
    for (const [own, need] of this.needs) needs.set(own, Math.max(needs.get(own) ?? 0, at(need, found)));
    const sizes = [];
    for (const [own, need] of needs) {
      if (need > this.limit) throw new PlayerError("input", `a tensor needs ${need} bytes, this device has up to ${this.limit}: use smaller inputs`);
      if (need > this.buffers[own]) sizes.push([own, Math.min(Math.ceil((need * 5) / 4 / ALIGNMENT) * ALIGNMENT, this.limit)]);
    }
    for (const [own, size] of sizes) this.buffers[own] = size;
    const fresh = new Set(sizes.map(([own]) => own));
    const view = new DataView(uniforms.buffer, uniforms.byteOffset, uniforms.length);
    const steps = this.steps.map(([words, groups, regions], i) => {
      for (const [place, kind, word] of words) view[KINDS[kind]](place, at(word, found), true);
      const spans = regions.map(([own, ...span]) => (span.length ? [own, ...span.map((word) => at(word, found))] : [own, 0, this.buffers[own]]));
      const bindings = [...spans, ...this.bindings[i].slice(spans.length)];
      const changed = bindings.some(([own], k) => fresh.has(own) || String(bindings[k]) !== String(this.bindings[i][k]));
      this.bindings[i] = bindings;
      return [this.prepare + i, changed ? bindings : null, groups.map((count) => whole(at(count, found)))];
    });
    const writes = this.elements.map(([own, layout, row]) => [own, packed(layout, row.map((word) => at(word, found)))]);
    return { sizes, steps, writes, results: this.results.map(([own, offset]) => [own, at(offset, found)]) };
  }
}

/** In how many parts threads share each step: as shares_of of backends/wasm/sharing.py. */
function sharesOf({ nodes, units, works }, found) {
  const counts = new Map();
  for (const node of nodes) counts.set(node, (counts.get(node) ?? 0) + 1);
  const each = new Map([...counts].map(([node, count]) => [node, Math.floor(at(works.get(node), found) / count)]));
  const own = units.map((count) => at(count, found));
  const total = nodes.reduce((sum, node, i) => sum + (own[i] && each.get(node) >= LEAST_STEP ? each.get(node) : 0), 0);
  return nodes.map((node, i) => {
    const work = each.get(node);
    if (own[i] <= 1 || work < LEAST_STEP || total < LEAST_RUN) return 0;
    return Math.max(1, Math.min(Math.floor(work / SHARE), MOST_SHARES));
  });
}

/** The regime that holds for the sizes. */
export function regimeFor(regimes, sizes, name) {
  const found = regimes.find((regime) => regime.sizes.holds(sizes));
  if (!found) throw new PlayerError("input", `package ${name} has no plan for sizes ${sizes.join(", ")} (${regimes[0].sizes.symbols.join(", ")}); compile it again with these \`sizes\``);
  return found;
}

/** The shapes of inputs that were given, by name; what has none is as long as its elements are. */
export function shapesGiven(rows, named) {
  const sizes = new Map(); // by the names of open sizes
  const shapes = new Map();
  const take = (row, shape) => {
    const fits = Array.isArray(shape) && shape.length === row.shape.length && shape.every((size, i) => Number.isSafeInteger(size) && size >= 0 && (typeof row.shape[i] === "string" || row.shape[i] === size));
    if (!fits) throw new PlayerError("input", `${row.name} was given [${shape}], needs [${row.shape.join(", ")}]`);
    shape.forEach((size, i) => typeof row.shape[i] === "string" && row.shape[i] !== "?" && sizes.set(row.shape[i], size));
    shapes.set(row.name, shape);
  };
  for (const row of rows) if (named[row.name]?.shape) take(row, [...named[row.name].shape]);
  for (const row of rows) {
    if (shapes.has(row.name)) continue;
    const value = named[row.name]?.data ?? named[row.name];
    const known = row.shape.map((size) => sizes.get(size) ?? size);
    const open = known.filter((size) => typeof size === "string");
    const product = known.reduce((total, size) => (typeof size === "string" ? total : total * size), 1);
    const length = Array.isArray(value) || ArrayBuffer.isView(value) ? value.length : undefined;
    if (open.length > 1 || (open.length && (length === undefined || length % product))) {
      throw new PlayerError("input", `the shape of ${row.name} is open: [${row.shape.join(", ")}]; give it as { data, shape }`);
    }
    take(row, known.map((size) => (typeof size === "string" ? length / product : size)));
  }
  return shapes;
}

// A graph's recorded dispatches on the buffers of tensors themselves: bind groups are made once for each set of tensors, a
// run is one pass of commands that are still open. What cannot be bound is copied beside it. Knows no operator.

const KEPT = 16; // sets of tensors that a graph remembers

/** What one set of tensors needs: steps with its bind groups, copies around them, and buffers that stand in for tensors. */
class Bound {
  before = []; // of copies [from, offset, to, bytes]
  after = [];
  own = [];
  proven = false; // a run has succeeded

  constructor(program, { first, count, inputs, outputs }, given, made) {
    const others = new Map();
    const bound = (name, [isGiven, number, offset, nbytes], { buffer, nbytes: wanted }, copy) => {
      if (isGiven && buffer.size >= nbytes) return others.set(number, buffer);
      if (isGiven) others.set(number, this.#standIn(program, buffer, nbytes));
      copy(others.get(number) ?? program.buffers[number], offset, buffer, Math.ceil(wanted / 4) * 4);
    };
    for (const [name, end] of Object.entries(inputs)) {
      bound(name, end, given.get(name), (at, offset, buffer, nbytes) => this.before.push([buffer, 0, at, offset, nbytes]));
    }
    for (const [name, end] of Object.entries(outputs)) {
      bound(name, end, made.get(name), (at, offset, buffer, nbytes) => this.after.push([at, offset, buffer, 0, nbytes]));
    }
    this.steps = program.steps.slice(first, first + count).map((step) => (
      step.bindings.some(([number]) => others.has(number)) ? program.bound(step, others) : step));
  }

  #standIn(program, { usage }, size) {
    const buffer = program.device.gpu.createBuffer({ label: "MLTensor, in whole quads", size, usage });
    this.own.push(buffer);
    return buffer;
  }

  encode(program, encoder) {
    for (const copy of this.before) encoder.copyBufferToBuffer(...copy);
    if (this.steps.length) program.encode(encoder, 0, this.steps.length, 1, null, this.steps);
    for (const copy of this.after) encoder.copyBufferToBuffer(...copy);
  }

  close() {
    for (const buffer of this.own) buffer.destroy();
  }
}

export class BoundGraph {
  #sets = new Map(); // "numbers of tensors" -> Bound, the one that was used last comes last

  constructor({ program, facts, close }) {
    Object.assign(this, { program, facts, free: close });
  }

  /**
   * Adds the graph on tensors {number, buffer, nbytes} by name to `commands`, of webnn_gpu.js. On new tensors it is submitted
   * at once: a promise of what error scopes say then, else null.
   */
  run(given, made, commands) {
    const { program, facts } = this;
    program.device.check();
    const numbers = [[facts.inputs, given], [facts.outputs, made]].flatMap(([ends, named]) => Object.keys(ends).map((name) => named.get(name).number));
    const key = numbers.join();
    let found = this.#sets.get(key);
    if (found?.proven) {
      this.#keep(key, found);
      commands.add((encoder) => found.encode(program, encoder));
      return null;
    }
    commands.submit();
    return program.device.scoped(() => {
      found ??= new Bound(program, facts, given, made);
      this.#keep(key, found);
      commands.add((encoder) => found.encode(program, encoder));
      commands.submit();
    }).then(() => { found.proven = true; });
  }

  #keep(key, found) {
    this.#sets.delete(key);
    this.#sets.set(key, found);
    if (this.#sets.size > KEPT) this.#drop(this.#sets.keys().next().value);
  }

  #drop(key) {
    this.#sets.get(key).close();
    this.#sets.delete(key);
  }

  /** Forgets the sets that a tensor belongs to. */
  forget(number) {
    for (const key of [...this.#sets.keys()]) if (key.split(",").includes(`${number}`)) this.#drop(key);
  }

  close() {
    for (const key of [...this.#sets.keys()]) this.#drop(key);
    this.free();
  }
}

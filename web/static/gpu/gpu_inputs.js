// Inputs of a program's next submit: bytes, buffers of others, pictures. Bytes go through mapped buffers.
//
// The browser copies what writeBuffer is given three times, what is mapped twice. Measured on an NVIDIA H200, until a
// dispatch behind them is done, median: 0.8 MB 0.55 and 0.34 ms, 3 MB 1.67 and 0.88 ms, 64 kB 0.25 and 0.23.

const LEAST = 2 ** 16; // bytes; fewer are as fast by writeBuffer
const MOST = 2 ** 26; // bytes of all mapped buffers of a device together

const bytesOf = ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength);

/** Calls `use` with the bytes of a typed array or of a Python buffer, which is read in place. */
export function withBytes(source, use) {
  const view = source.getBuffer?.("u8");
  try {
    use(view ? view.data : bytesOf(source));
  } finally {
    view?.release();
  }
}

/** Copies bytes to a GPUBuffer now, from byte `offset` on. */
export function writeBytes(queue, buffer, bytes, offset) {
  const whole = bytes.length & ~3;
  if (whole) queue.writeBuffer(buffer, offset, bytes, 0, whole);
  if (whole === bytes.length) return;
  const tail = new Uint8Array(4);
  tail.set(bytes.subarray(whole));
  queue.writeBuffer(buffer, offset + whole, tail);
}

/** The mapped buffers of a device. */
export class Uploads {
  #gpu;
  #free = new Map(); // bytes -> mapped buffers
  #bytes = 0;

  constructor(gpu) {
    this.#gpu = gpu;
  }

  /** A buffer that holds these bytes until it is given back; undefined where writeBuffer serves better. */
  filled(bytes) {
    const size = (bytes.length + 3) & ~3;
    const buffer = size < LEAST ? undefined : this.#free.get(size)?.pop() ?? this.#made(size);
    if (!buffer) return undefined;
    const mapped = new Uint8Array(buffer.getMappedRange());
    mapped.set(bytes);
    mapped.fill(0, bytes.length);
    buffer.unmap();
    return buffer;
  }

  #made(size) {
    if (this.#bytes + size > MOST) this.#drop();
    if (this.#bytes + size > MOST) return undefined;
    const usage = GPUBufferUsage.MAP_WRITE | GPUBufferUsage.COPY_SRC;
    try {
      const buffer = this.#gpu.createBuffer({ label: "input", size, usage, mappedAtCreation: true });
      this.#bytes += size;
      return buffer;
    } catch (error) {
      if (error instanceof RangeError) return undefined; // no memory to map
      throw error;
    }
  }

  /** Takes a buffer back whose copy was submitted; it is used again once the GPU has read it. */
  giveBack(buffer) {
    buffer.mapAsync(GPUMapMode.WRITE).then(() => {
      if (!this.#free.has(buffer.size)) this.#free.set(buffer.size, []);
      this.#free.get(buffer.size).push(buffer);
    }, () => { this.#bytes -= buffer.size; }); // the device is lost, or gone
  }

  #drop() {
    for (const list of this.#free.values()) {
      for (const buffer of list) {
        buffer.destroy();
        this.#bytes -= buffer.size;
      }
    }
    this.#free.clear();
  }
}

/** What fills a program's buffers before its next range runs. */
export class Inputs {
  #program;
  #uploads;
  #waiting = []; // {buffer, size, source, staged}
  #known = new WeakSet(); // buffers of others, and makers of pictures, that were seen to fit

  constructor(program) {
    this.#program = program;
    this.#uploads = program.device.uploads;
  }

  /** Typed arrays, Python buffers, GPUBuffers and pictures: the number of a buffer, its source, and so on. */
  give(given) {
    for (let i = 0; i < given.length; i += 2) {
      const source = given[i + 1];
      if (source.getBuffer || ArrayBuffer.isView(source)) this.feed(given[i], source);
      else this.take(given[i], source);
    }
  }

  /** Fills a buffer with bytes. */
  feed(buffer, source) {
    this.#forget(buffer);
    const { buffers, device } = this.#program;
    withBytes(source, (bytes) => {
      const staged = this.#uploads.filled(bytes);
      if (!staged) return writeBytes(device.gpu.queue, buffers[buffer], bytes, 0);
      this.#known.add(staged);
      return this.#waiting.push({ buffer, size: Math.min(staged.size, buffers[buffer].size), source: staged, staged });
    });
  }

  /** Fills a buffer from a GPUBuffer, or as a picture of gpu_picture.js says. */
  take(buffer, source) {
    this.#forget(buffer);
    this.#waiting.push({ buffer, size: Math.min(source.size, this.#program.buffers[buffer].size) & ~3, source });
  }

  /** What a run that failed left for a buffer must not reach the next one. */
  #forget(buffer) {
    for (const item of this.#waiting) if (item.buffer === buffer && item.staged) this.#uploads.giveBack(item.staged);
    this.#waiting = this.#waiting.filter((item) => item.buffer !== buffer);
  }

  /** Whether there is a source that was not seen before; it counts as seen from now on. */
  strange() {
    const makers = this.#waiting.map(({ source }) => source.maker ?? source).filter((maker) => !this.#known.has(maker));
    for (const maker of makers) this.#known.add(maker);
    return makers.length > 0;
  }

  /** Encodes what is waiting. What it returns is called behind the submit; undefined where nothing is waiting. */
  encode(encoder) {
    if (!this.#waiting.length) return undefined;
    const items = this.#waiting.splice(0);
    for (const { source, buffer, size } of items) {
      const target = this.#program.buffers[buffer];
      if (source.encode) source.encode(encoder, target);
      else encoder.copyBufferToBuffer(source, 0, target, 0, size);
    }
    return () => {
      for (const { staged } of items) if (staged) this.#uploads.giveBack(staged);
    };
  }
}

// Writes a WebAssembly module by hand: a loop of f32x4.relaxed_madd (or mul and add) over ten accumulators, which
// is more than latency times pipes and fits the registers that V8 has on x86.

const ACCUMULATORS = 10, UNROLL = 8;
const I32 = 0x7f, F32 = 0x7d, V128 = 0x7b, VOID = 0x40;

function leb(value) {
  const bytes = [];
  do {
    bytes.push((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>>= 7;
  } while (value);
  return bytes;
}

const simd = (code) => [0xfd, ...leb(code)];
const f32 = (value) => [0x43, ...new Uint8Array(new Float32Array([value]).buffer)];
const get = (local) => [0x20, local], set = (local) => [0x21, local];
const section = (id, body) => [id, ...leb(body.length), ...body];

function moduleOf(step) {
  const x = 1, y = 2, first = 3; // locals after the parameter: factor, addend, accumulators
  const accumulators = Array.from({ length: ACCUMULATORS }, (_, i) => first + i);
  const prologue = [...f32(0.9999), ...simd(0x13), ...set(x), ...f32(1e-4), ...simd(0x13), ...set(y)];
  const loop = Array.from({ length: UNROLL }, () => accumulators.flatMap((local) => [...step(local, x, y), ...set(local)])).flat();
  const count = [...get(0), 0x41, 0x01, 0x6b, 0x22, 0x00, 0x0d, 0x00]; // n -= 1; repeat while n
  const sum = accumulators.slice(1).flatMap((local) => [...get(local), ...simd(0xe4)]);
  const code = [...prologue, 0x03, VOID, ...loop, ...count, 0x0b, ...get(first), ...sum, ...simd(0x1f), 0, 0x0b];
  const body = [1, ...leb(2 + ACCUMULATORS), V128, ...code];
  return new Uint8Array([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, [1, 0x60, 1, I32, 1, F32]), ...section(3, [1, 0]),
    ...section(7, [1, 4, ...new TextEncoder().encode("peak"), 0, 0]),
    ...section(10, [1, ...leb(body.length), ...body]),
  ]);
}

/** {bytes, flopsPerStep}: export `peak(steps: i32) -> f32`. */
export function peakModule() {
  const fused = moduleOf((local, x, y) => [...get(local), ...get(x), ...get(y), ...simd(0x105)]);
  const separate = () => moduleOf((local, x, y) => [...get(local), ...get(x), ...simd(0xe6), ...get(y), ...simd(0xe4)]);
  return { bytes: WebAssembly.validate(fused) ? fused : separate(), flopsPerStep: 2 * 4 * ACCUMULATORS * UNROLL };
}

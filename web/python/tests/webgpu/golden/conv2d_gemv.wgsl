// conv2d_gemv: for few pixels and long sums: the invocations of a workgroup share the sums of ROWS pixels by four
// channels and combine their parts.
//
//   x  [N, IH, IW, CI]     read four channels at a time
//   gate  [CI]             factors of the channels of x, if `gated`: then N = 1, and x is read as it lies
//   addend  [1, IH, IW, CI]  added to x times the factors, if `lifted`
//   w  [CO, KH, KW, CI]    read four input channels at a time, as models store it
//   y  [N, OH, OW, CO]     written in quads, or one by one if CO % 4 != 0
//   Needs: CI % 4 == 0, one group.  Padded taps count as 0.
//   Dispatch: (ceil(pixels/ROWS) * ceil(CO/4)) workgroups

enable subgroups;
// Generated from the lowering's signature.
@group(0) @binding(0) var<storage, read> x_words: array<vec4<f32>>;
alias x_t = f32;
alias x_v = vec4<f32>;
fn load_x(i: u32) -> f32 { return x_words[i >> 2u][i & 3u]; }
fn load4_x(q: u32) -> vec4<f32> { return x_words[q]; }
@group(0) @binding(1) var<storage, read> w_words: array<vec4<f32>>;
alias w_t = f32;
alias w_v = vec4<f32>;
fn load_w(i: u32) -> f32 { return w_words[i >> 2u][i & 3u]; }
fn load4_w(q: u32) -> vec4<f32> { return w_words[q]; }
@group(0) @binding(2) var<storage, read> bias_words: array<vec4<f32>>;
alias bias_t = f32;
alias bias_v = vec4<f32>;
fn load_bias(i: u32) -> f32 { return bias_words[i >> 2u][i & 3u]; }
fn load4_bias(q: u32) -> vec4<f32> { return bias_words[q]; }
@group(0) @binding(3) var<storage, read_write> y_words: array<f32>;
alias y_t = f32;
alias y_v = vec4<f32>;
fn store4_y(q: u32, v: vec4<f32>) { y_words[4u * q] = v.x; y_words[4u * q + 1u] = v.y; y_words[4u * q + 2u] = v.z; y_words[4u * q + 3u] = v.w; }
fn store_y(i: u32, v: f32) { y_words[i] = v; }
struct Params {
    pixels: u32,
    ci4: u32,
    co4: u32,
    co: u32,
    low: f32,
    high: f32,
}
@group(0) @binding(4) var<uniform> params: Params;
const WG: u32 = 32u;
const ROWS: u32 = 1u;
const READERS: u32 = ROWS;
const KW: u32 = 1u;
const TAPS: u32 = 1u;
// _epilogue: what happens to a sum of products before it is stored.
//
//   finish(sum, pixel, c4) = activation(sum + bias + residual) for channels 4*c4..4*c4+3 of a pixel; the residual is
//   added to the activation's result if LATE is "sum"; "larger" and "smaller" compare that with params.late_bound, and a
//   NaN stays one
//   input1(i), input4(q) = an element, a quad of x as the sum takes them
//   bias and slope (prelu's) [CO]; residual [pixels, RC] may have fewer channels than y: the rest counts as 0.
//   scales [CO] of weights that are stored as bytes.
//   Needs: bindings x and, by the variables, bias, residual, slope, scales; params.residual_c where there is a residual.

// _activation: `activate(v)`, the activation that a step carries in its epilogue (not prelu: it needs a slope).
//
//   v is four numbers; clamps, hard_swish, sigmoid, silu, tanh, gelu and gelu_tanh, which is by tanh.
//   Needs: params.low and params.high where it is a clamp by "bounds", which may be infinite; a NaN stays one there.

fn activate(v: vec4<f32>) -> vec4<f32> {
    let low = vec4<f32>(params.low);
    let high = vec4<f32>(params.high);
    let raised = select(v, low, v < low);
    return select(raised, high, raised > high);
}
// _late_bound: `bounded(v)`, the larger or the smaller of v and params.late_bound; a NaN stays one.

fn input1(i: u32) -> x_t { return load_x(i); }
fn input4(q: u32) -> x_v { return load4_x(q); }
fn finish(sum: vec4<f32>, pixel: u32, c4: u32) -> vec4<f32> {
    var v = sum;
    v += load4_bias(c4);
    return activate(v);
}
// _put: put(pixel, c4, sum) finishes a sum of products and stores it as channels 4*c4..4*c4+3 of a pixel.
//
//   What lies outside of y [pixels, CO] is left out.
//   Needs: _epilogue, a binding y, params.pixels, params.co4 (quads of channels, the last one filled up), params.co.

fn put(pixel: u32, c4: u32, sum: w_v) {
    if (pixel >= params.pixels || c4 >= params.co4) { return; }
    let v = finish(sum, pixel, c4);
    for (var lane = 0u; lane < min(4u, params.co - 4u * c4); lane++) {
        store_y(pixel * params.co + 4u * c4 + lane, v[lane]);
    }
}

// Where a row of x begins, in quads.
alias Row = u32;
fn row_at(pixel: u32) -> Row { return min(pixel, params.pixels - 1u) * params.ci4; }
fn quad_of(row: Row, i: u32) -> x_v { return input4(row + i); }
// Four channels of each row.
struct acc_v {
    s0: w_v,
}
fn start() -> acc_v { return acc_v(); }
fn combine(a: acc_v, b: acc_v) -> acc_v {
    return acc_v(
        a.s0 + b.s0,
    );
}
fn subgroup_reduce(a: acc_v) -> acc_v {
    return acc_v(
        subgroupAdd(a.s0),
    );
}
// _workgroup_reduce: `workgroup_reduce(own, local)` combines the values of all invocations of a workgroup.
//
//   The first READERS invocations get the result. acc_v, its neutral value start(), combine(acc, acc) and
//   subgroup_reduce(acc) are the includer's.  Needs: WG is a power of two.
//   With subgroups one value of each passes workgroup memory, else all do, in a tree. How many invocations a subgroup
//   has and which ones is left to the device: the least local index of each marks where its value lies.
//   Call it once, in uniform control flow.

var<workgroup> partial: array<acc_v, WG>;
var<workgroup> marks: array<atomic<u32>, (WG + 31u) / 32u>;

fn workgroup_reduce(own: acc_v, local: u32) -> acc_v {
    // Not all drivers clear workgroup memory; and the barrier brings subgroups together again behind a loop.
    if (local % 32u == 0u) { atomicStore(&marks[local / 32u], 0u); }
    workgroupBarrier();
    let part = subgroup_reduce(own);
    let place = subgroupMin(local);
    if (local == place) {
        partial[local] = part;
        atomicOr(&marks[local / 32u], 1u << (local % 32u));
    }
    workgroupBarrier();
    var all = start();
    if (local >= READERS) { return all; }
    for (var word = 0u; word < (WG + 31u) / 32u; word++) {
        var bits = atomicLoad(&marks[word]);
        while (bits != 0u) {
            all = combine(all, partial[32u * word + firstTrailingBit(bits)]);
            bits &= bits - 1u;
        }
    }
    return all;
}
@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = group.x + group.y * groups.x;
    // What lies outside repeats the last pixel or channel and is not stored: no barrier may stand behind a return.
    let first = index / params.co4 * ROWS;
    let c4 = index % params.co4;
    let quads = TAPS * params.ci4;
    let at = min(4u * c4 + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.co - 1u)) * quads;
    let row0 = row_at(first + 0u);
    var own = acc_v();
    for (var i = local; i < quads; i += WG) {
        let w0 = load4_w(at.x + i);
        let w1 = load4_w(at.y + i);
        let w2 = load4_w(at.z + i);
        let w3 = load4_w(at.w + i);
        let x0 = quad_of(row0, i);
        own.s0 += w_v(dot(x0, w0), dot(x0, w1), dot(x0, w2), dot(x0, w3));
    }
    let sums = workgroup_reduce(own, local);

    // Invocation r stores row r.
    var sum = sums.s0;
    if (local < ROWS) { put(first + local, c4, sum); }
}

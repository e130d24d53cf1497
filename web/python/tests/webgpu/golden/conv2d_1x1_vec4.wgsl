// conv2d_1x1_vec4: a matrix product; one invocation computes TILE rows by four columns.
//
//   x  [rows, CI]             read four channels at a time
//   w  [CI, ceil(CO/4)]       vec4 of output channels, packed at load, zeros behind CO
//   y  [rows, CO]             written in quads, or one by one if CO % 4 != 0
//   Needs: CI % 4 == 0, stride 1, no padding, one group.
//   Dispatch: (ceil(rows/TILE) * ceil(CO/4) / WG), neighbours share their rows

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
@group(0) @binding(3) var<storage, read> residual_words: array<vec4<f32>>;
alias residual_t = f32;
alias residual_v = vec4<f32>;
fn load_residual(i: u32) -> f32 { return residual_words[i >> 2u][i & 3u]; }
fn load4_residual(q: u32) -> vec4<f32> { return residual_words[q]; }
@group(0) @binding(4) var<storage, read_write> y_words: array<vec4<f32>>;
alias y_t = f32;
alias y_v = vec4<f32>;
fn store4_y(q: u32, v: vec4<f32>) { y_words[q] = v; }
struct Params {
    pixels: u32,
    ci4: u32,
    co4: u32,
    co: u32,
    residual_c: u32,
    low: f32,
    high: f32,
}
@group(0) @binding(5) var<uniform> params: Params;
const WG: u32 = 64u;
const TILE: u32 = 1u;
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
fn residual_at(pixel: u32, c4: u32) -> vec4<f32> {
    if (c4 >= params.residual_c / 4u) { return vec4<f32>(0.0); }
    return load4_residual(pixel * (params.residual_c / 4u) + c4);
}
fn finish(sum: vec4<f32>, pixel: u32, c4: u32) -> vec4<f32> {
    var v = sum;
    v += load4_bias(c4);
    v += residual_at(pixel, c4);
    return activate(v);
}
// _put: put(pixel, c4, sum) finishes a sum of products and stores it as channels 4*c4..4*c4+3 of a pixel.
//
//   What lies outside of y [pixels, CO] is left out.
//   Needs: _epilogue, a binding y, params.pixels, params.co4 (quads of channels, the last one filled up), params.co.

fn put(pixel: u32, c4: u32, sum: w_v) {
    if (pixel >= params.pixels || c4 >= params.co4) { return; }
    let v = finish(sum, pixel, c4);
    store4_y(pixel * params.co4 + c4, v);
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let c4 = index % params.co4;
    let first = (index / params.co4) * TILE;
    if (first >= params.pixels) { return; }

    var at: array<u32, TILE>;
    var sum: array<w_v, TILE>;
    for (var t = 0u; t < TILE; t++) {
        at[t] = min(first + t, params.pixels - 1u) * params.ci4;
        sum[t] = w_v();
    }
    var tap = c4;
    for (var k = 0u; k < params.ci4; k++) {
        let w0 = load4_w(tap);
        let w1 = load4_w(tap + params.co4);
        let w2 = load4_w(tap + 2u * params.co4);
        let w3 = load4_w(tap + 3u * params.co4);
        tap += 4u * params.co4;
        for (var t = 0u; t < TILE; t++) {
            let v = input4(at[t] + k);
            sum[t] += v.x * w0 + v.y * w1 + v.z * w2 + v.w * w3;
        }
    }
    for (var t = 0u; t < TILE; t++) { put(first + t, c4, sum[t]); }
}

// depthwise_vec4: one invocation computes TILE neighbouring pixels of a row by four channels.
//
//   x  [N, IH, IW, C]     read in quads
//   w  [KH, KW, C]        read in quads
//   y  [N, OH, OW, C]     written in quads
//   Needs: C % 4 == 0, one output channel per input channel.  Padded taps count as 0.
//   Dispatch: (N * OH * ceil(OW/TILE) * C/4 / WG)

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
@group(0) @binding(3) var<storage, read> slope_words: array<vec4<f32>>;
alias slope_t = f32;
alias slope_v = vec4<f32>;
fn load_slope(i: u32) -> f32 { return slope_words[i >> 2u][i & 3u]; }
fn load4_slope(q: u32) -> vec4<f32> { return slope_words[q]; }
@group(0) @binding(4) var<storage, read_write> y_words: array<vec4<f32>>;
alias y_t = f32;
alias y_v = vec4<f32>;
fn store4_y(q: u32, v: vec4<f32>) { y_words[q] = v; }
struct Params {
    rows: u32,
    co4: u32,
    ih: u32,
    iw: u32,
    oh: u32,
    ow: u32,
    stride_h: u32,
    stride_w: u32,
    dilation_h: u32,
    dilation_w: u32,
    pad_top: i32,
    pad_left: i32,
}
@group(0) @binding(5) var<uniform> params: Params;
const WG: u32 = 64u;
const TILE: u32 = 1u;
const KH: u32 = 3u;
const KW: u32 = 3u;
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

fn activate(v: vec4<f32>) -> vec4<f32> { return v; }
// _late_bound: `bounded(v)`, the larger or the smaller of v and params.late_bound; a NaN stays one.

fn input1(i: u32) -> x_t { return load_x(i); }
fn input4(q: u32) -> x_v { return load4_x(q); }
fn finish(sum: vec4<f32>, pixel: u32, c4: u32) -> vec4<f32> {
    var v = sum;
    v += load4_bias(c4);
    v = select(v * load4_slope(c4), v, v >= vec4<f32>(0.0));
    return activate(v);
}
@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let columns = (params.ow + TILE - 1u) / TILE;
    let c4 = index % params.co4;
    let ox = (index / params.co4) % columns * TILE;
    let row = index / (params.co4 * columns);
    if (row >= params.rows) { return; }

    let n = row / params.oh;
    let top = i32(row % params.oh * params.stride_h) - params.pad_top;
    let left = i32(ox * params.stride_w) - params.pad_left;
    var sum: array<w_v, TILE>;
    for (var t = 0u; t < TILE; t++) { sum[t] = w_v(); }
    for (var ky = 0u; ky < KH; ky++) {
        let iy = top + i32(ky * params.dilation_h);
        if (iy < 0 || iy >= i32(params.ih)) { continue; }
        let line = (n * params.ih + u32(iy)) * params.iw;
        for (var kx = 0u; kx < KW; kx++) {
            let w = load4_w((ky * KW + kx) * params.co4 + c4);
            for (var t = 0u; t < TILE; t++) {
                let ix = left + i32(t * params.stride_w + kx * params.dilation_w);
                if (ix >= 0 && ix < i32(params.iw)) {
                    sum[t] += input4((line + u32(ix)) * params.co4 + c4) * w;
                }
            }
        }
    }
    for (var t = 0u; t < TILE; t++) {
        if (ox + t < params.ow) {
            let pixel = row * params.ow + ox + t;
            store4_y(pixel * params.co4 + c4, finish(sum[t], pixel, c4));
        }
    }
}

// conv2d_vec4: one invocation computes TILE pixels (consecutive in [N, OH, OW]) by four output channels.
//
//   x  [N, IH, IW, CI]                read four channels at a time
//   w  [KH, KW, CI, ceil(CO/4)]       vec4 of output channels, packed at load, zeros behind CO
//   y  [N, OH, OW, CO]                written in quads, or one by one if CO % 4 != 0
//   Needs: CI % 4 == 0, one group.  Padded taps count as 0.
//   Dispatch: (ceil(pixels/TILE) * ceil(CO/4) / WG), neighbours share their pixels

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
@group(0) @binding(3) var<storage, read_write> y_words: array<vec4<f32>>;
alias y_t = f32;
alias y_v = vec4<f32>;
fn store4_y(q: u32, v: vec4<f32>) { y_words[q] = v; }
struct Params {
    pixels: u32,
    ci4: u32,
    co4: u32,
    co: u32,
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
    low: f32,
    high: f32,
}
@group(0) @binding(4) var<uniform> params: Params;
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
    store4_y(pixel * params.co4 + c4, v);
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let c4 = index % params.co4;
    let first = (index / params.co4) * TILE;
    if (first >= params.pixels) { return; }

    var base: array<u32, TILE>;
    var top: array<i32, TILE>;
    var left: array<i32, TILE>;
    var sum: array<w_v, TILE>;
    for (var t = 0u; t < TILE; t++) {
        let pixel = min(first + t, params.pixels - 1u);
        base[t] = pixel / (params.oh * params.ow) * params.ih;
        top[t] = i32((pixel / params.ow) % params.oh * params.stride_h) - params.pad_top;
        left[t] = i32(pixel % params.ow * params.stride_w) - params.pad_left;
        sum[t] = w_v();
    }
    for (var ky = 0u; ky < KH; ky++) {
        for (var kx = 0u; kx < KW; kx++) {
            var at: array<u32, TILE>;
            var inside: array<bool, TILE>;
            for (var t = 0u; t < TILE; t++) {
                let iy = top[t] + i32(ky * params.dilation_h);
                let ix = left[t] + i32(kx * params.dilation_w);
                let real = iy >= 0 && iy < i32(params.ih) && ix >= 0 && ix < i32(params.iw);
                inside[t] = real;
                at[t] = select(0u, ((base[t] + u32(iy)) * params.iw + u32(ix)) * params.ci4, real);
            }
            var tap = (ky * KW + kx) * params.ci4 * 4u * params.co4 + c4;
            for (var k = 0u; k < params.ci4; k++) {
                let w0 = load4_w(tap);
                let w1 = load4_w(tap + params.co4);
                let w2 = load4_w(tap + 2u * params.co4);
                let w3 = load4_w(tap + 3u * params.co4);
                tap += 4u * params.co4;
                for (var t = 0u; t < TILE; t++) {
                    let v = select(x_v(), input4(at[t] + k), inside[t]);
                    sum[t] += v.x * w0 + v.y * w1 + v.z * w2 + v.w * w3;
                }
            }
        }
    }
    for (var t = 0u; t < TILE; t++) { put(first + t, c4, sum[t]); }
}

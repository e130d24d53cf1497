// depthwise_4x1: one invocation computes four neighbouring pixels of a row by four channels in registers.
//
//   x  [N, IH, IW, C]     read in quads
//   w  [KH, KW, C]        read in quads
//   y  [N, OH, OW, C]     written in quads
//   Needs: C % 4 == 0, one output channel per input channel.  Padded taps count as 0.
//   Dispatch: (N * OH * ceil(OW/4) * C/4 / WG), neighbours share their pixels

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
    low: f32,
    high: f32,
}
@group(0) @binding(4) var<uniform> params: Params;
const WG: u32 = 64u;
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
fn put(row: u32, ox: u32, c4: u32, sum: w_v) {
    if (ox >= params.ow) { return; }
    let pixel = row * params.ow + ox;
    store4_y(pixel * params.co4 + c4, finish(sum, pixel, c4));
}

// Column ix of a row, 0 outside.
fn column(line: u32, ix: i32, c4: u32) -> x_v {
    let real = ix >= 0 && ix < i32(params.iw);
    return select(x_v(), input4((line + select(0u, u32(ix), real)) * params.co4 + c4), vec4<bool>(real));
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let columns = (params.ow + 3u) / 4u;
    let c4 = index % params.co4;
    let ox = (index / params.co4) % columns * 4u;
    let row = index / (params.co4 * columns);
    if (row >= params.rows) { return; }

    let n = row / params.oh;
    let top = i32(row % params.oh * params.stride_h) - params.pad_top;
    let left = i32(ox * params.stride_w) - params.pad_left;
    var s0 = w_v(); var s1 = w_v(); var s2 = w_v(); var s3 = w_v();
    for (var ky = 0u; ky < KH; ky++) {
        let iy = top + i32(ky * params.dilation_h);
        if (iy < 0 || iy >= i32(params.ih)) { continue; }
        let line = (n * params.ih + u32(iy)) * params.iw;
        // Stride and dilation 1: the four windows overlap, each step brings one new column.
        var x0 = column(line, left, c4);
        var x1 = column(line, left + 1, c4);
        var x2 = column(line, left + 2, c4);
        for (var kx = 0u; kx < KW; kx++) {
            let x3 = column(line, left + 3 + i32(kx), c4);
            let w = load4_w((ky * KW + kx) * params.co4 + c4);
            s0 += x0 * w; s1 += x1 * w; s2 += x2 * w; s3 += x3 * w;
            x0 = x1; x1 = x2; x2 = x3;
        }
    }
    put(row, ox, c4, s0);
    put(row, ox + 1u, c4, s1);
    put(row, ox + 2u, c4, s2);
    put(row, ox + 3u, c4, s3);
}

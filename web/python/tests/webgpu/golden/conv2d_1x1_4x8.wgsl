// conv2d_1x1_4x8: a matrix product; one invocation computes four rows by eight columns in registers.
//
//   x  [rows, CI]             read four channels at a time
//   w  [CI, ceil(CO/4)]       vec4 of output channels, packed at load, zeros behind CO
//   y  [rows, CO]             written in quads
//   Needs: CI % 4 == 0, CO % 8 == 0, stride 1, no padding, one group.
//   Dispatch: (ceil(rows/4) * CO/8 / WG), neighbours share their rows

// Generated from the lowering's signature.
@group(0) @binding(0) var<storage, read> x_words: array<u32>;
alias x_t = i32;
alias x_v = vec4<i32>;
fn load_x(i: u32) -> i32 { return i32((x_words[i >> 2u] >> (8u * (i & 3u))) & 255u); }
fn load4_x(q: u32) -> vec4<i32> { return vec4<i32>((vec4<u32>(x_words[q]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u)); }
@group(0) @binding(1) var<storage, read> w_words: array<vec4<i32>>;
alias w_t = i32;
alias w_v = vec4<i32>;
fn load_w(i: u32) -> i32 { return w_words[i >> 2u][i & 3u]; }
fn load4_w(q: u32) -> vec4<i32> { return w_words[q]; }
@group(0) @binding(2) var<storage, read> scale_words: array<vec4<f32>>;
alias scale_t = f32;
alias scale_v = vec4<f32>;
fn load_scale(i: u32) -> f32 { return scale_words[i >> 2u][i & 3u]; }
fn load4_scale(q: u32) -> vec4<f32> { return scale_words[q]; }
@group(0) @binding(3) var<storage, read> bias_words: array<vec4<i32>>;
alias bias_t = i32;
alias bias_v = vec4<i32>;
fn load_bias(i: u32) -> i32 { return bias_words[i >> 2u][i & 3u]; }
fn load4_bias(q: u32) -> vec4<i32> { return bias_words[q]; }
@group(0) @binding(4) var<storage, read_write> y_words: array<u32>;
alias y_t = i32;
alias y_v = vec4<i32>;
fn store4_y(q: u32, v: vec4<i32>) { let b = vec4<u32>(v) & vec4<u32>(255u); y_words[q] = b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u); }
struct Params {
    pixels: u32,
    ci4: u32,
    co4: u32,
    co: u32,
    x_zero: i32,
    y_zero: i32,
    low: i32,
    high: i32,
}
@group(0) @binding(5) var<uniform> params: Params;
const WG: u32 = 64u;
// _epilogue: what happens to a sum of products before it is stored.
//
//   finish(sum, pixel, c4) = activation(sum + bias + residual) for channels 4*c4..4*c4+3 of a pixel; the residual is
//   added to the activation's result if LATE is "sum"; "larger" and "smaller" compare that with params.late_bound, and a
//   NaN stays one
//   input1(i), input4(q) = an element, a quad of x as the sum takes them
//   bias and slope (prelu's) [CO]; residual [pixels, RC] may have fewer channels than y: the rest counts as 0.
//   scales [CO] of weights that are stored as bytes.
//   Needs: bindings x and, by the variables, bias, residual, slope, scales; params.residual_c where there is a residual.

// _requantize: the epilogue of integer products: inputs without their zero point, and the rounding of a sum.
//
//   input1(i), input4(q) = an element, a quad of x minus its zero point;  finish: _requantize_sum
//   Needs: a binding x of integers, params.x_zero, what _requantize_sum needs.

fn input1(i: u32) -> x_t { return load_x(i) - params.x_zero; }
fn input4(q: u32) -> x_v { return load4_x(q) - params.x_zero; }

// _requantize_sum: the rounding of an integer sum of products to stored integers.
//
//   y = saturate(round_even(f32(sum + bias) * scale[c]) + y_zero), as ai-edge-litert's default delegate rounds
//   finish(sum, pixel, c4) for four channels, finish_one(sum, pixel, c) for one
//   Needs: bindings scale [CO] and, if has_bias, bias [CO]; params y_zero, low, high.

fn finish(sum: vec4<i32>, pixel: u32, c4: u32) -> vec4<i32> {
    var v = sum;
    v += load4_bias(c4);
    let scaled = vec4<i32>(round(vec4<f32>(v) * load4_scale(c4))) + params.y_zero;
    return clamp(scaled, vec4<i32>(params.low), vec4<i32>(params.high));
}

fn finish_one(sum: i32, pixel: u32, c: u32) -> i32 {
    var v = sum;
    v += load_bias(c);
    return clamp(i32(round(f32(v) * load_scale(c))) + params.y_zero, params.low, params.high);
}
fn put(row: u32, c4: u32, left: w_v, right: w_v) {
    if (row >= params.pixels) { return; }
    store4_y(row * params.co4 + c4, finish(left, row, c4));
    store4_y(row * params.co4 + c4 + 1u, finish(right, row, c4 + 1u));
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let columns = params.co4 / 2u;
    let c4 = index % columns * 2u;
    let first = index / columns * 4u;
    if (first >= params.pixels) { return; }

    let last = params.pixels - 1u;
    let row0 = first * params.ci4;
    let row1 = min(first + 1u, last) * params.ci4;
    let row2 = min(first + 2u, last) * params.ci4;
    let row3 = min(first + 3u, last) * params.ci4;
    var a0 = w_v(); var a1 = w_v(); var a2 = w_v(); var a3 = w_v();
    var b0 = w_v(); var b1 = w_v(); var b2 = w_v(); var b3 = w_v();
    var tap = c4;
    for (var k = 0u; k < params.ci4; k++) {
        let x0 = input4(row0 + k);
        let x1 = input4(row1 + k);
        let x2 = input4(row2 + k);
        let x3 = input4(row3 + k);
        var p = load4_w(tap);
        var q = load4_w(tap + 1u);
        a0 += x0.x * p; a1 += x1.x * p; a2 += x2.x * p; a3 += x3.x * p;
        b0 += x0.x * q; b1 += x1.x * q; b2 += x2.x * q; b3 += x3.x * q;
        tap += params.co4;
        p = load4_w(tap);
        q = load4_w(tap + 1u);
        a0 += x0.y * p; a1 += x1.y * p; a2 += x2.y * p; a3 += x3.y * p;
        b0 += x0.y * q; b1 += x1.y * q; b2 += x2.y * q; b3 += x3.y * q;
        tap += params.co4;
        p = load4_w(tap);
        q = load4_w(tap + 1u);
        a0 += x0.z * p; a1 += x1.z * p; a2 += x2.z * p; a3 += x3.z * p;
        b0 += x0.z * q; b1 += x1.z * q; b2 += x2.z * q; b3 += x3.z * q;
        tap += params.co4;
        p = load4_w(tap);
        q = load4_w(tap + 1u);
        a0 += x0.w * p; a1 += x1.w * p; a2 += x2.w * p; a3 += x3.w * p;
        b0 += x0.w * q; b1 += x1.w * q; b2 += x2.w * q; b3 += x3.w * q;
        tap += params.co4;
    }
    put(first, c4, a0, b0);
    put(first + 1u, c4, a1, b1);
    put(first + 2u, c4, a2, b2);
    put(first + 3u, c4, a3, b3);
}

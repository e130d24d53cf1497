// conv2d_any: one invocation computes one pixel by four output channels of one group; any CI, any CO, any groups.
//
//   x  [N, IH, IW, CI]                     read element by element
//   w  [groups, KH, KW, CG, ceil(OG/4)]    vec4 of output channels, packed at load, zeros behind OG
//   y  [N, OH, OW, CO]                     written in quads, or one by one if OG % 4 != 0
//   CG = CI/groups, OG = CO/groups.  Padded taps count as 0.
//   TRANSPOSED: the other way round: input pixel iy reaches the output pixels iy*stride + ky*dilation - pad
//   Dispatch: (pixels * groups * ceil(OG/4) / WG)

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
    groups: u32,
    ci: u32,
    cg: u32,
    og: u32,
    og4: u32,
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
// _epilogue_one: as _epilogue, for a single channel c of a pixel, where quads would straddle groups or rows.
//
//   finish_one(sum, pixel, c) = activation(sum + bias[c] + residual[pixel, c]);  Needs: as _epilogue

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
fn finish_one(sum: f32, pixel: u32, c: u32) -> f32 {
    var v = sum;
    v += load_bias(c);
    v = activate(vec4<f32>(v)).x;
    return v;
}
@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let quads = params.groups * params.og4;
    let column = index % quads;
    let pixel = index / quads;
    if (pixel >= params.pixels) { return; }

    let group = column / params.og4;
    let n = pixel / (params.oh * params.ow);
    let top = i32((pixel / params.ow) % params.oh * params.stride_h) - params.pad_top;
    let left = i32(pixel % params.ow * params.stride_w) - params.pad_left;
    var sum = w_v();
    for (var ky = 0u; ky < KH; ky++) {
        let iy = top + i32(ky * params.dilation_h);
        if (iy < 0 || iy >= i32(params.ih)) { continue; }
        for (var kx = 0u; kx < KW; kx++) {
            let ix = left + i32(kx * params.dilation_w);
            if (ix < 0 || ix >= i32(params.iw)) { continue; }
            let at = ((n * params.ih + u32(iy)) * params.iw + u32(ix)) * params.ci + group * params.cg;
            let tap = ((group * KH + ky) * KW + kx) * params.cg * params.og4 + column % params.og4;
            for (var k = 0u; k < params.cg; k++) {
                sum += input1(at + k) * load4_w(tap + k * params.og4);
            }
        }
    }
    let first = 4u * (column % params.og4);
    for (var lane = 0u; lane < min(4u, params.og - first); lane++) {
        let c = group * params.og + first + lane;
        store_y(pixel * params.groups * params.og + c, finish_one(sum[lane], pixel, c));
    }
}

// pool2d_vec4: one invocation computes one output pixel by four channels: the largest or a mean of a window.
//
//   x  [N, IH, IW, C]   read in quads          y  [N, OH, OW, C]   written in quads
//   Needs: C % 4 == 0.
//   Dispatch: (N*OH*OW*C/4 / WG)

// Generated from the lowering's signature.
@group(0) @binding(0) var<storage, read> x_words: array<u32>;
alias x_t = i32;
alias x_v = vec4<i32>;
fn load_x(i: u32) -> i32 { return i32((x_words[i >> 2u] >> (8u * (i & 3u))) & 255u); }
fn load4_x(q: u32) -> vec4<i32> { return vec4<i32>((vec4<u32>(x_words[q]) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u)); }
@group(0) @binding(1) var<storage, read_write> y_words: array<u32>;
alias y_t = i32;
alias y_v = vec4<i32>;
fn store4_y(q: u32, v: vec4<i32>) { let b = vec4<u32>(v) & vec4<u32>(255u); y_words[q] = b.x | (b.y << 8u) | (b.z << 16u) | (b.w << 24u); }
struct Params {
    count: u32,
    c: u32,
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
    lowest: i32,
    low: i32,
    high: i32,
}
@group(0) @binding(2) var<uniform> params: Params;
const WG: u32 = 64u;
const KH: u32 = 3u;
const KW: u32 = 3u;
// _pool: what a window is reduced to: start(), step(acc, x), settle(acc, taps) for four channels.
//
//   Padded taps are never stepped over: they do not win, nor count in the mean's divisor.
//   Needs: bindings x and y; params lowest, and for integers low and high: the bounds of a result.

fn bounded(v: x_v) -> y_v { return clamp(v, y_v(params.low), y_v(params.high)); }
// The mean of stored integers, ties away from zero.
fn start() -> x_v { return x_v(); }
fn step(acc: x_v, x: x_v) -> x_v { return acc + x; }
fn settle(acc: x_v, taps: u32) -> y_v { return bounded((acc + sign(acc) * i32(taps / 2u)) / i32(taps)); }
@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (4u * index >= params.count) { return; }
    let c4s = params.c / 4u;
    let c4 = index % c4s;
    let pixel = index / c4s;
    let n = pixel / (params.oh * params.ow);
    let top = i32((pixel / params.ow) % params.oh * params.stride_h) - params.pad_top;
    let left = i32(pixel % params.ow * params.stride_w) - params.pad_left;
    var acc = start();
    var taps = 0u;
    for (var ky = 0u; ky < KH; ky++) {
        let iy = top + i32(ky * params.dilation_h);
        if (iy < 0 || iy >= i32(params.ih)) { continue; }
        for (var kx = 0u; kx < KW; kx++) {
            let ix = left + i32(kx * params.dilation_w);
            if (ix < 0 || ix >= i32(params.iw)) { continue; }
            acc = step(acc, load4_x(((n * params.ih + u32(iy)) * params.iw + u32(ix)) * c4s + c4));
            taps += 1u;
        }
    }
    store4_y(index, settle(acc, taps));
}

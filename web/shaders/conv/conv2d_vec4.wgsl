// conv2d_vec4: one invocation computes TILE pixels (consecutive in [N, OH, OW]) by four output channels.
//
//   x  [N, IH, IW, CI]                read four channels at a time
//   w  [KH, KW, CI, ceil(CO/4)]       vec4 of output channels, packed at load, zeros behind CO
//   y  [N, OH, OW, CO]                written in quads, or one by one if CO % 4 != 0
//   Needs: CI % 4 == 0, one group.  Padded taps count as 0.
//   Dispatch: (ceil(pixels/TILE) * ceil(CO/4) / WG), neighbours share their pixels

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const TILE: u32 = {{ tile }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
{$ include "_epilogue.wgsl" $}
{$ include "_put.wgsl" $}

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

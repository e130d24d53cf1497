// depthwise_vec4: one invocation computes TILE neighbouring pixels of a row by four channels.
//
//   x  [N, IH, IW, C]     read in quads
//   w  [KH, KW, C]        read in quads
//   y  [N, OH, OW, C]     written in quads
//   Needs: C % 4 == 0, one output channel per input channel.  Padded taps count as 0.
//   Dispatch: (N * OH * ceil(OW/TILE) * C/4 / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const TILE: u32 = {{ tile }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
{$ include "_epilogue.wgsl" $}

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

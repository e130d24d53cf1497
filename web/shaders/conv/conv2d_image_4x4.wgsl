// conv2d_image_4x4: for few input channels (a picture): one invocation computes four neighbouring pixels of a row
// by four output channels in registers.
//
//   x  [N, IH, IW, CI]           read element by element
//   w  [KH, KW, CI, ceil(CO/4)]  vec4 of output channels, packed at load, zeros behind CO
//   y  [N, OH, OW, CO]           written in quads
//   Needs: CO % 4 == 0, one group.  Padded taps count as 0.
//   Dispatch: (N * OH * ceil(OW/4) * CO/4 / WG), neighbours share their pixels

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
{$ include "_epilogue.wgsl" $}

fn put(row: u32, ox: u32, c4: u32, sum: w_v) {
    if (ox >= params.ow) { return; }
    let pixel = row * params.ow + ox;
    store4_y(pixel * params.co4 + c4, finish(sum, pixel, c4));
}

// Channel k of column ix, 0 outside the row.
fn column(line: u32, ix: i32, k: u32) -> x_t {
    let real = ix >= 0 && ix < i32(params.iw);
    return select(x_t(), input1((line + select(0u, u32(ix), real)) * params.ci + k), real);
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
    let step = i32(params.stride_w);
    var s0 = w_v(); var s1 = w_v(); var s2 = w_v(); var s3 = w_v();
    for (var ky = 0u; ky < KH; ky++) {
        let iy = top + i32(ky * params.dilation_h);
        if (iy < 0 || iy >= i32(params.ih)) { continue; }
        let line = (n * params.ih + u32(iy)) * params.iw;
        for (var kx = 0u; kx < KW; kx++) {
            let ix = left + i32(kx * params.dilation_w);
            let tap = (ky * KW + kx) * params.ci * params.co4 + c4;
            for (var k = 0u; k < params.ci; k++) {
                let w = load4_w(tap + k * params.co4);
                s0 += column(line, ix, k) * w;
                s1 += column(line, ix + step, k) * w;
                s2 += column(line, ix + 2 * step, k) * w;
                s3 += column(line, ix + 3 * step, k) * w;
            }
        }
    }
    put(row, ox, c4, s0);
    put(row, ox + 1u, c4, s1);
    put(row, ox + 2u, c4, s2);
    put(row, ox + 3u, c4, s3);
}

// conv2d_dot_4x1: for few output channels: one invocation computes four neighbouring pixels of one channel.
//
//   x  [N, IH, IW, CI]     read four channels at a time
//   w  [CO, KH, KW, CI]    read four channels at a time, as the file stores it
//   y  [N, OH, OW, CO]     written one by one
//   Needs: CI % 4 == 0, one group.  Padded taps count as 0.
//   Dispatch: (N * OH * ceil(OW/4) * CO / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
{$ include "_epilogue_one.wgsl" $}

fn put(row: u32, ox: u32, c: u32, sum: w_t) {
    if (ox >= params.ow) { return; }
    let pixel = row * params.ow + ox;
    store_y(pixel * params.co + c, finish_one(sum, pixel, c));
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let columns = (params.ow + 3u) / 4u;
    let ox = index % columns * 4u;
    let c = (index / columns) % params.co;
    let row = index / (columns * params.co);
    if (row >= params.rows) { return; }

    let n = row / params.oh;
    let top = i32(row % params.oh * params.stride_h) - params.pad_top;
    let left = i32(ox * params.stride_w) - params.pad_left;
    var sum = w_v();
    for (var ky = 0u; ky < KH; ky++) {
        let iy = top + i32(ky * params.dilation_h);
        if (iy < 0 || iy >= i32(params.ih)) { continue; }
        let line = (n * params.ih + u32(iy)) * params.iw;
        for (var kx = 0u; kx < KW; kx++) {
            let ix = left + i32(kx * params.dilation_w) + vec4<i32>(0, 1, 2, 3) * i32(params.stride_w);
            let real = (ix >= vec4<i32>(0)) & (ix < vec4<i32>(i32(params.iw)));
            let at = (line + select(vec4<u32>(0u), vec4<u32>(ix), real)) * params.ci4;
            let tap = ((c * KH + ky) * KW + kx) * params.ci4;
            var part = w_v();
            for (var k = 0u; k < params.ci4; k++) {
                let w = load4_w(tap + k);
                part += w_v(dot(input4(at.x + k), w), dot(input4(at.y + k), w), dot(input4(at.z + k), w), dot(input4(at.w + k), w));
            }
            sum += select(w_v(), part, real);
        }
    }
    put(row, ox, c, sum.x);
    put(row, ox + 1u, c, sum.y);
    put(row, ox + 2u, c, sum.z);
    put(row, ox + 3u, c, sum.w);
}

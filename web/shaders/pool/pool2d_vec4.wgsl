// pool2d_vec4: one invocation computes one output pixel by four channels: the largest or a mean of a window.
//
//   x  [N, IH, IW, C]   read in quads          y  [N, OH, OW, C]   written in quads
//   Needs: C % 4 == 0.
//   Dispatch: (N*OH*OW*C/4 / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
{$ include "_pool.wgsl" $}

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

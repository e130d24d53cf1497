// pool2d_vec4: one invocation computes one output pixel by four channels: the largest or the mean of a window.
//
//   x  [N, IH, IW, C]   read in quads          y  [N, OH, OW, C]   written in quads
//   Needs: C % 4 == 0.  Padded taps never count: not in the maximum, not in the mean's divisor.
//   Dispatch: (N*OH*OW*C/4 / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
const LOWEST: f32 = -3.4028234663852886e38;
{$ include "_activation.wgsl" $}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let c4 = index % params.c4;
    let pixel = index / params.c4;
    if (pixel >= params.pixels) { return; }

    let n = pixel / (params.oh * params.ow);
    let top = i32((pixel / params.ow) % params.oh * params.stride_h) - params.pad_top;
    let left = i32(pixel % params.ow * params.stride_w) - params.pad_left;
    var best = vec4<f32>(LOWEST);
    var sum = vec4<f32>(0.0);
    var taps = 0.0;
    for (var ky = 0u; ky < KH; ky++) {
        let iy = top + i32(ky * params.dilation_h);
        if (iy < 0 || iy >= i32(params.ih)) { continue; }
        for (var kx = 0u; kx < KW; kx++) {
            let ix = left + i32(kx * params.dilation_w);
            if (ix < 0 || ix >= i32(params.iw)) { continue; }
            let v = load4_x(((n * params.ih + u32(iy)) * params.iw + u32(ix)) * params.c4 + c4);
            $$ if kind == "max"
            best = max(best, v);
            $$ else
            sum += v;
            taps += 1.0;
            $$ endif
        }
    }
    $$ if kind == "max"
    store4_y(index, activate(best));
    $$ else
    store4_y(index, activate(sum / taps));
    $$ endif
}

// conv2d_any: one invocation computes one pixel by four output channels of one group; any CI, any CO, any groups.
//
//   x  [N, IH, IW, CI]                     read element by element
//   w  [groups, KH, KW, CG, ceil(OG/4)]    vec4 of output channels, packed at load, zeros behind OG
//   y  [N, OH, OW, CO]                     written in quads, or one by one if OG % 4 != 0
//   CG = CI/groups, OG = CO/groups.  Padded taps count as 0.
//   TRANSPOSED: the other way round: input pixel iy reaches the output pixels iy*stride + ky*dilation - pad
//   Dispatch: (pixels * groups * ceil(OG/4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
$$ if og_quads
{$ include "_epilogue.wgsl" $}
$$ else
{$ include "_epilogue_one.wgsl" $}
$$ endif

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let quads = params.groups * params.og4;
    let column = index % quads;
    let pixel = index / quads;
    if (pixel >= params.pixels) { return; }

    let group = column / params.og4;
    let n = pixel / (params.oh * params.ow);
    $$ if transposed
    let bottom = i32((pixel / params.ow) % params.oh) + params.pad_top;
    let right = i32(pixel % params.ow) + params.pad_left;
    $$ else
    let top = i32((pixel / params.ow) % params.oh * params.stride_h) - params.pad_top;
    let left = i32(pixel % params.ow * params.stride_w) - params.pad_left;
    $$ endif
    var sum = w_v();
    for (var ky = 0u; ky < KH; ky++) {
        $$ if transposed
        let y = bottom - i32(ky * params.dilation_h);
        let iy = y / i32(params.stride_h);
        if (y < 0 || iy * i32(params.stride_h) != y || iy >= i32(params.ih)) { continue; }
        $$ else
        let iy = top + i32(ky * params.dilation_h);
        if (iy < 0 || iy >= i32(params.ih)) { continue; }
        $$ endif
        for (var kx = 0u; kx < KW; kx++) {
            $$ if transposed
            let x = right - i32(kx * params.dilation_w);
            let ix = x / i32(params.stride_w);
            if (x < 0 || ix * i32(params.stride_w) != x || ix >= i32(params.iw)) { continue; }
            $$ else
            let ix = left + i32(kx * params.dilation_w);
            if (ix < 0 || ix >= i32(params.iw)) { continue; }
            $$ endif
            let at = ((n * params.ih + u32(iy)) * params.iw + u32(ix)) * params.ci + group * params.cg;
            let tap = ((group * KH + ky) * KW + kx) * params.cg * params.og4 + column % params.og4;
            for (var k = 0u; k < params.cg; k++) {
                sum += input1(at + k) * load4_w(tap + k * params.og4);
            }
        }
    }
    $$ if og_quads
    store4_y(pixel * quads + column, finish(sum, pixel, column));
    $$ else
    let first = 4u * (column % params.og4);
    for (var lane = 0u; lane < min(4u, params.og - first); lane++) {
        let c = group * params.og + first + lane;
        store_y(pixel * params.groups * params.og + c, finish_one(sum[lane], pixel, c));
    }
    $$ endif
}

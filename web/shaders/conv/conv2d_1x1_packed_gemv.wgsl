// conv2d_1x1_packed_gemv: an 8-bit product for few rows and long sums: the invocations of a workgroup share the sums of
// one row by four channels and combine their parts.
//
//   x  [rows, CI/4]   words of four int8 or uint8
//   w  [CO, CI/4]     words of four int8 or uint8, as models store it
//   y  [rows, CO]     int8 or uint8, written in quads
//   Needs: CI % 4 == 0, CO % 4 == 0, stride 1, no padding, one group, packed_4x8_integer_dot_product.
//   Dispatch: (rows * CO/4) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const READERS: u32 = 1u;
{$ include "_packed_dot.wgsl" $}
{$ include "_requantize_sum.wgsl" $}

alias acc_v = vec4<i32>;
{$ include "_sum.wgsl" $}
{$ include "_workgroup_reduce.wgsl" $}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = group.x + group.y * groups.x;
    // Spare workgroups repeat the last row and are not stored: no barrier may stand behind a return.
    let pixel = index / params.co4;
    let c4 = index % params.co4;
    let row = min(pixel, params.pixels - 1u) * params.ci4;
    let at = (4u * c4 + vec4<u32>(0u, 1u, 2u, 3u)) * params.ci4;
    var own = acc_v();
    for (var k = local; k < params.ci4; k += WG) {
        let x = load_x(row + k) ^ FLIP_X;
        let w = vec4<u32>(load_w(at.x + k), load_w(at.y + k), load_w(at.z + k), load_w(at.w + k)) ^ vec4<u32>(FLIP_W);
        // With each word the zero points' share: 4 * x_zero * w_zero - x_zero * (sum of w).
        own += products(x, w) + 4 * params.x_zero * params.w_zero - params.x_zero * products(ONES, w);
        $$ if shifted
        own -= params.w_zero * dot4I8Packed(ONES, x);
        $$ endif
    }
    let sum = workgroup_reduce(own, local);
    if (local == 0u && pixel < params.pixels) { store4_y(index, finish(sum, pixel, c4)); }
}

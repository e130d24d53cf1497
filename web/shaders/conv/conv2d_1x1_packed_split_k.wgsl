// conv2d_1x1_packed_split_k: conv2d_1x1_packed_4x4 for few rows: eight invocations share each sum.
//
//   x  [rows, CI/4]   words of four int8 or uint8
//   w  [CI/4, CO]     words of four int8 or uint8, packed at load
//   y  [rows, CO]     int8 or uint8, written in quads
//   Needs: CI % 4 == 0, CO % 4 == 0, stride 1, no padding, one group, packed_4x8_integer_dot_product.
//   A workgroup computes four rows by eight quads of channels: invocation = (slice of the sum, quad).
//   Dispatch: (ceil(rows/4) * ceil(CO/4 / 8)) workgroups

{{ prelude }}
const WG: u32 = 64u;
const SLICES: u32 = 8u;
const QUADS: u32 = 8u;
const TILE: u32 = 4u;
{$ include "_packed_dot.wgsl" $}
{$ include "_requantize_sum.wgsl" $}

var<workgroup> partial: array<vec4<i32>, 256>;

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let blocks = (params.co4 + QUADS - 1u) / QUADS;
    let index = group.x + group.y * groups.x;
    // What lies outside repeats the last row or quad and is not stored: no barrier may stand behind a return.
    let first = index / blocks * TILE;
    let wanted = index % blocks * QUADS + local % QUADS;
    let c4 = min(wanted, params.co4 - 1u);
    let slice = local / QUADS;
    let last = params.pixels - 1u;
    let row = min(vec4<u32>(first) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(last)) * params.ci4;
    var s0 = vec4<i32>();
    var s1 = vec4<i32>();
    var s2 = vec4<i32>();
    var s3 = vec4<i32>();
    var x_sums = vec4<i32>();
    var w_sums = vec4<i32>();
    for (var k = slice; k < params.ci4; k += SLICES) {
        let x = vec4<u32>(load_x(row.x + k), load_x(row.y + k), load_x(row.z + k), load_x(row.w + k)) ^ vec4<u32>(FLIP_X);
        let w = load4_w(k * params.co4 + c4) ^ vec4<u32>(FLIP_W);
        s0 += products(x.x, w);
        s1 += products(x.y, w);
        s2 += products(x.z, w);
        s3 += products(x.w, w);
        // With each word the zero points' share: 4 * x_zero * w_zero - x_zero * (sum of w).
        w_sums += 4 * params.x_zero * params.w_zero - params.x_zero * products(ONES, w);
        $$ if shifted
        x_sums += params.w_zero * products(ONES, x);
        $$ endif
    }
    partial[local] = s0 + w_sums - x_sums.x;
    partial[local + WG] = s1 + w_sums - x_sums.y;
    partial[local + 2u * WG] = s2 + w_sums - x_sums.z;
    partial[local + 3u * WG] = s3 + w_sums - x_sums.w;
    workgroupBarrier();

    // Invocation (t, quad) of the first half adds the slices of row t.
    let pixel = first + slice;
    if (slice >= TILE || wanted >= params.co4 || pixel > last) { return; }
    var sum = vec4<i32>();
    for (var s = 0u; s < SLICES; s++) { sum += partial[slice * WG + s * QUADS + local % QUADS]; }
    store4_y(pixel * params.co4 + c4, finish(sum, pixel, c4));
}

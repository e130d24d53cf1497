// conv2d_1x1_packed_4x4: a product of 8-bit matrices, four channels a word; four rows by four columns an invocation.
//
//   x  [rows, CI/4]   words of four int8 or uint8
//   w  [CI/4, CO]     words of four int8 or uint8, packed at load
//   y  [rows, CO]     int8 or uint8, written in quads
//   Needs: CI % 4 == 0, CO % 4 == 0, stride 1, no padding, one group, packed_4x8_integer_dot_product.
//   x_zero and w_zero are those of numbers that FLIP_X and FLIP_W have turned into int8:
//   sum (x - x_zero)(w - w_zero) = sum xw - w_zero sum x - x_zero sum w + CI x_zero w_zero
//   Dispatch: (ceil(rows/4) * CO/4 / WG), neighbours share their rows

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_packed_dot.wgsl" $}
{$ include "_requantize_sum.wgsl" $}

fn put(row: u32, c4: u32, sum: vec4<i32>) {
    if (row < params.pixels) { store4_y(row * params.co4 + c4, finish(sum, row, c4)); }
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let c4 = index % params.co4;
    let first = index / params.co4 * 4u;
    if (first >= params.pixels) { return; }

    let row = min(vec4<u32>(first) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.pixels - 1u)) * params.ci4;
    var s0 = vec4<i32>();
    var s1 = vec4<i32>();
    var s2 = vec4<i32>();
    var s3 = vec4<i32>();
    var x_sums = vec4<i32>();
    var w_sums = vec4<i32>();
    for (var k = 0u; k < params.ci4; k++) {
        let x = vec4<u32>(load_x(row.x + k), load_x(row.y + k), load_x(row.z + k), load_x(row.w + k)) ^ vec4<u32>(FLIP_X);
        let w = load4_w(k * params.co4 + c4) ^ vec4<u32>(FLIP_W);
        s0 += products(x.x, w);
        s1 += products(x.y, w);
        s2 += products(x.z, w);
        s3 += products(x.w, w);
        w_sums += products(ONES, w);
        $$ if shifted
        x_sums += products(ONES, x);
        $$ endif
    }
    let rest = 4 * i32(params.ci4) * params.x_zero * params.w_zero - params.x_zero * w_sums;
    put(first, c4, s0 + rest - params.w_zero * x_sums.x);
    put(first + 1u, c4, s1 + rest - params.w_zero * x_sums.y);
    put(first + 2u, c4, s2 + rest - params.w_zero * x_sums.z);
    put(first + 3u, c4, s3 + rest - params.w_zero * x_sums.w);
}

// product_parts: adds the parts of the sums of a product that workgroups of conv2d_tiled shared, and finishes them.
//
//   x  [SPLIT, pixels, 4*ceil(CO/4)]  float32
//   y  [pixels, CO]                   written in quads, or one by one if CO % 4 != 0
//   Dispatch: (pixels * ceil(CO/4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const SPLIT: u32 = {{ split }}u;
alias w_v = vec4<f32>;
{$ include "_epilogue.wgsl" $}
{$ include "_put.wgsl" $}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let count = params.pixels * params.co4;
    if (index >= count) { return; }
    var sum = load4_x(index);
    for (var s = 1u; s < SPLIT; s++) { sum += load4_x(s * count + index); }
    put(index / params.co4, index % params.co4, sum);
}

// elementwise_unary: y = op(x), four consecutive elements an invocation.
//
//   x, y  [count]
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_unary.wgsl" $}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    store4_y(quad, unary(load4_x(quad)));
}

// lookup: y = table[x], a table of the 256 results of a formula on stored bytes.
//
//   x, y   [count] int8 or uint8, four consecutive elements an invocation
//   table  [256] of y, at the positions of x's bytes
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    let at = vec4<u32>(load4_x(quad)) & vec4<u32>(255u);
    store4_y(quad, y_v(load_table(at.x), load_table(at.y), load_table(at.z), load_table(at.w)));
}

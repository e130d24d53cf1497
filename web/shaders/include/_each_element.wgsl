// _each_element: one invocation computes four consecutive elements by `element(i)` and stores them as a quad.
// Needs: a binding y, params.count (elements of y), const WG.

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    var v: y_v;
    for (var lane = 0u; lane < 4u; lane++) {
        let i = 4u * quad + lane;
        if (i < params.count) { v[lane] = element(i); }
    }
    store4_y(quad, v);
}

// _each_element: main() of shaders whose invocations each compute four consecutive elements of y by `element(i)`.
//
//   Needs: fn element(i: u32) -> y_t, a binding y, params.count (elements of y), const WG.
//   Dispatch: (ceil(count / 4) / WG), which may go on in y

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

// swiglu: y = gate / (1 + exp(-gate)) * up, four elements an invocation.
//
//   gate, up, y  [COUNT]
//   Dispatch: (ceil(COUNT / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    let gate = load4_gate(quad);
    let e = exp(-abs(gate));
    let share = select(e, vec4<f32>(1.0), gate >= vec4<f32>()) / (1.0 + e);
    store4_y(quad, gate * share * load4_up(quad));
}

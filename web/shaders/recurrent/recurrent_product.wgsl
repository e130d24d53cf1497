// recurrent_product: the state's share of gates, for layers that one workgroup cannot hold; an invocation a quad.
//
//   w [H, G, PADDED] in quads, x [B, H]  read;  y [B, G, PADDED]  written in the quads [first, end) of each sequence
//   Dispatch: (B * (end - first) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (index >= params.parts) { return; }
    let each = params.end - params.first;
    let b = index / each;
    let q = params.first + index % each;
    var sum = vec4<f32>(0.0);
    for (var k = 0u; k < params.size; k++) { sum += load_x(b * params.size + k) * load4_w(k * params.quads + q); }
    store4_y(b * params.quads + q, sum);
}

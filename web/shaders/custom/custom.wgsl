// custom: what a user's own WGSL, which stands above this line, computes from its inputs.
//
//   Inputs and outputs are bound under the names that the operator declares, in their own shapes.
//   form      "element": `element(i)` is called for four elements; "quad": `quad(q)` once; "shader": its own main
//   Dispatch: (ceil(y_count / 4) / WG), or what the user said

{{ prelude }}
$$ if form == "element"

fn quad(q: u32) -> y_v {
    var v: y_v;
    for (var lane = 0u; lane < 4u; lane++) {
        if (4u * q + lane < y_count) { v[lane] = element(4u * q + lane); }
    }
    return v;
}
$$ endif
$$ if form != "shader"
const WG: u32 = {{ workgroup }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let q = gid.x + gid.y * groups.x * WG;
    if (4u * q < y_count) { store4_y(q, quad(q)); }
}
$$ endif

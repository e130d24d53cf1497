// top_k: every element finds its rank in its row and, if that is below K, writes itself there.
//
//   x [ROWS, D], values and positions [ROWS, K], all of 32-bit types; the first of equals comes first
//   Dispatch: (ROWS*D / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (index >= params.count) { return; }
    let row = index / params.depth * params.depth;
    let own = index - row;
    let v = load_x(index);
    var rank = 0u;
    for (var d = 0u; d < params.depth; d++) {
        let other = load_x(row + d);
        if (other > v || (other == v && d < own)) { rank += 1u; }
    }
    if (rank < params.k) {
        let at = index / params.depth * params.k + rank;
        store_y(at, v);
        store_positions(at, i32(own));
    }
}

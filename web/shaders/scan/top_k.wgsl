// top_k: every element finds its rank in its part of a row and, if that is below K, writes itself there.
//
//   x [ROWS, D], values and positions [ROWS, PARTS, K], all of 32-bit types; the first of equals comes first
//   A row is cut into PARTS: the first LONGER of them have SHORTEST + 1 elements, the others SHORTEST, which is at least K.
//   carried: x is the result of an earlier stage, `places` are the positions of its elements.
//   Dispatch: (ROWS*D / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (index >= params.count) { return; }
    let row = index / params.depth;
    let own = index % params.depth;
    let before = min(own / (params.shortest + 1u), params.longer); // whole longer parts
    let part = before + (own - before * (params.shortest + 1u)) / params.shortest * u32(before == params.longer);
    let begin = row * params.depth + part * params.shortest + min(part, params.longer);
    let end = begin + params.shortest + u32(part < params.longer);
    let v = load_x(index);
    var rank = 0u;
    for (var d = begin; d < end; d++) {
        let other = load_x(d);
        if (other > v || (other == v && d < index)) { rank += 1u; }
    }
    if (rank < params.k) {
        let at = (row * params.parts + part) * params.k + rank;
        store_y(at, v);
        $$ if carried
        store_positions(at, load_places(index));
        $$ else
        store_positions(at, i32(own));
        $$ endif
    }
}

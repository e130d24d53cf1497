// top_k: every element finds its rank in its part of a row and, if that is below K, writes itself there.
//
//   x [ROWS, D], values and positions [ROWS, PARTS, K], all of 32-bit types; the first of equals comes first, a NaN last
//   A row is cut into PARTS: the first LONGER of them have SHORTEST + 1 elements, the others SHORTEST, which is at least K.
//   carried: x is the result of an earlier stage, `places` are the positions of its elements.
//   real: x are floats, which are compared as the integers of their bits: comparisons leave NaN open in WGSL, and
//   ranks that are not all different would leave places of the result unwritten.
//   Dispatch: (ROWS*D / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

$$ if real
// An integer that is larger for larger floats, the same for both zeros, and 0 for a NaN.
fn order_of(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) { return 0u; }
    return select(0x80000000u + magnitude, 0x80000000u - magnitude, bits > magnitude);
}
$$ endif

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
    $$ if real
    let mine = order_of(v);
    $$ else
    let mine = v;
    $$ endif
    var rank = 0u;
    for (var d = begin; d < end; d++) {
        $$ if real
        let other = order_of(load_x(d));
        $$ else
        let other = load_x(d);
        $$ endif
        if (other > mine || (other == mine && d < index)) { rank += 1u; }
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

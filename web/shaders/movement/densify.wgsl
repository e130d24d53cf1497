// densify: scatters the stored elements of a sparse constant into zeros; runs once at load.
//
//   x      [count] stored elements, in the order of the traversal
//   tables segments and indices of all levels, one after the other
//   y      the dense elements, 32-bit, zeros before
//   An element's place is found from the innermost level outwards: at a dense level its index is the rest by
//   the level's size; at a compressed one it is listed, and its parent is the segment that holds it.
//   Dispatch: (count / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const LEVELS: u32 = {{ levels }}u;

// The segment of a level that holds position p: the last one that does not begin behind it.
fn segment_of(first: u32, count: u32, p: u32) -> u32 {
    var low = 0u;
    var high = count - 1u;
    while (low + 1u < high) {
        let middle = (low + high) / 2u;
        if (load_tables(first + middle) <= p) { low = middle; } else { high = middle; }
    }
    return low;
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (index >= params.count) { return; }
    var p = index;
    var place = 0u;
    for (var back = 0u; back < LEVELS; back++) {
        let level = LEVELS - 1u - back;
        if (segments_at(level) == 0u) {
            place += p % size_at(level) * step_at(level);
            p /= size_at(level);
        } else {
            place += load_tables(start_at(level) + segments_at(level) + p) * step_at(level);
            p = segment_of(start_at(level), segments_at(level), p);
        }
    }
    if (place < params.dense) { store_y(place, y_t(load_x(index))); }
}

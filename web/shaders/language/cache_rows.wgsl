// cache_rows: keys, turned by their positions, and values of some rows into a cache, before attention over it.
//
//   k, v    [ROWS, G, D]          place  the first row's position, and how many rows count; speeds as _turned.wgsl has it
//   keys    [G, CAPACITY/8, D, 8]          values  [G, CAPACITY, D]: the rows that count are written, others stay
//   One element of both an invocation.
//   Dispatch: (ceil(ROWS * G * D / WG))

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_turned.wgsl" $}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let d = index % D;
    let group = index / D % params.groups;
    let row = index / D / params.groups;
    let first = load_place(0u);
    if (row >= counted(first, load_place(1u))) { return; }
    let base = index - d;
    let pair = pair_of(d);
    let position = first + i32(row);
    store_keys(key_at(group, u32(position), d), turned(load_k(base + pair.x), load_k(base + pair.y), d, position));
    store_values((group * params.capacity + u32(position)) * D + d, load_v(index));
}

// cache_rows: keys, turned by their positions, and values of some rows into a cache, and queries turned, before attention.
//
//   qkv       [ROWS, H*D + G*D + G*D] if joined, else q [ROWS, H, D] and k, v [ROWS, G, D]
//   place     the first row's position, and how many rows count; speeds as _turned.wgsl has it
//   keys      [G, CAPACITY/8, D, 8]          values  [G, CAPACITY, D]: the rows that count are written, others stay
//   turned_q  [ROWS, H, D]; 0 in rows that do not count
//   One element of queries, or of keys and values, an invocation.
//   Dispatch: (ceil(ROWS * (H + G) * D / WG))

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_turned.wgsl" $}
{$ include "_heads.wgsl" $}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let d = index % D;
    let head = index / D % (params.heads + params.groups);
    let row = index / D / (params.heads + params.groups);
    let first = load_place(0u);
    if (row >= params.rows) { return; }
    let counts = row < counted(first, load_place(1u));
    let pair = pair_of(d);
    let position = first + i32(row);
    if (head < params.heads) {
        let at = head * D;
        let q = turned(query_of(row, at + pair.x), query_of(row, at + pair.y), d, position);
        store_turned_q((row * params.heads + head) * D + d, select(0.0, q, counts));
        return;
    }
    if (!counts) { return; }
    let group = head - params.heads;
    let at = group * D;
    let key = turned(key_of(row, at + pair.x), key_of(row, at + pair.y), d, position);
    store_keys(key_at(group, u32(position), d), key);
    store_values((group * params.capacity + u32(position)) * D + d, value_of(row, at + d));
}

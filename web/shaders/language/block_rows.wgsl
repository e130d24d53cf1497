// block_rows: rows of a table of blocks, as floats: what the words of a text begin as.
//
//   w     bytes [V, row] in blocks (_blocks.wgsl), as words
//   ids   [M]; others than 0 to V - 1 count as 0          y  [M, K], written in quads
//   An invocation opens one block of 32.
//   Dispatch: (ceil(M * K/32 / WG))

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_blocks.wgsl" $}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (32u * index >= params.count) { return; }
    let id = load_ids(32u * index / params.k);
    let row = u32(select(0, id, id >= 0 && id < i32(params.words))) * params.row_bytes;
    let at = index % (params.k / 32u);
    $$ if floats
    for (var j = 0u; j < 8u; j++) { store4_y(8u * index + j, weight_quad(row, at, j, 0u)); }
    $$ else
    var b = open_block(row, at, 0u);
    for (var j = 0u; j < 8u; j++) { store4_y(8u * index + j, unpacked(b.q[j]) * b.d[j / 4u] + b.m[j / 4u]); }
    $$ endif
}

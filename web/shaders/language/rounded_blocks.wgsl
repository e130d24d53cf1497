// rounded_blocks: rows as products with blocks take them: each 32 neighbours become whole numbers times a scale.
//
//   x, y  [ROWS, K], read and written in quads
//   Needs: K % 32 == 0.  An invocation takes a block of 32.
//   Dispatch: (ceil(ROWS * K/32 / WG))

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_row_block.wgsl" $}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (32u * index >= params.count) { return; }
    let blocks = params.k / 32u;
    let x = row_block(index / blocks, index % blocks, 1.0);
    for (var j = 0u; j < 8u; j++) { store4_y(8u * index + j, x.v[j] * x.step); }
}

// reduce_workgroup: one workgroup reduces one row of x together, for long rows and few results.
//
//   x [ROWS, D] read in quads, y [ROWS] of a 32-bit type
//   Needs: D % 4 == 0.
//   Dispatch: (ROWS) workgroups

$$ if subgroups
enable subgroups;
$$ endif
{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const READERS: u32 = 1u;
{$ include "_reduce.wgsl" $}
$$ if subgroups
{$ include "_reduce_subgroup.wgsl" $}
$$ endif
{$ include "_workgroup_reduce.wgsl" $}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    // Spare workgroups of a folded dispatch repeat the last row: no barrier may stand behind a return.
    let row = min(group.x + group.y * groups.x, params.rows - 1u);
    let quads = params.reduced / 4u;
    var acc = start();
    for (var q = local; q < quads; q += WG) { acc = step(acc, load4_x(row * quads + q)); }
    let all = workgroup_reduce(acc, local);
    if (local == 0u) { store_y(row, finish(across(all)).x); }
}

// reduce_columns: one workgroup reduces four neighbouring columns together, for long columns and few results.
//
//   x [O, D, I] read in quads along I, y [O, I] written in quads
//   Needs: I % 4 == 0.
//   Dispatch: (O * I/4) workgroups

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
    // Spare workgroups of a folded dispatch repeat the last quad: no barrier may stand behind a return.
    let quad = min(group.x + group.y * groups.x, params.count / 4u - 1u);
    let inner = params.inner / 4u;
    let base = quad / inner * params.reduced * inner + quad % inner;
    var acc = start();
    for (var d = local; d < params.reduced; d += WG) { acc = step(acc, load4_x(base + d * inner)); }
    let all = workgroup_reduce(acc, local);
    if (local == 0u) { store4_y(quad, finish(all)); }
}

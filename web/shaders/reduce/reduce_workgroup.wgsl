// reduce_workgroup: one workgroup reduces one row of x together, for long rows and few results.
//
//   x [ROWS, D] read in quads, y [ROWS] of a 32-bit type
//   Needs: D % 4 == 0.
//   Dispatch: (ROWS) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_reduce_together.wgsl" $}

fn units() -> u32 { return params.rows; }
fn compute(row: u32, local: u32) {
    let quads = params.reduced / 4u;
    var acc = start();
    for (var q = local; q < quads; q += WG) { acc = step(acc, load4_x(row * quads + q)); }
    let all = workgroup_reduce(acc, local);
    if (local == 0u) { store_y(row, finish(across(all)).x); }
}

// reduce_columns: one workgroup reduces four neighbouring columns together, for long columns and few results.
//
//   x [O, D, I] read in quads along I, y [O, I] written in quads
//   Needs: I % 4 == 0.
//   Dispatch: (O * I/4) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_reduce_together.wgsl" $}

fn units() -> u32 { return params.count / 4u; }
fn compute(quad: u32, local: u32) {
    let inner = params.inner / 4u;
    let base = quad / inner * params.reduced * inner + quad % inner;
    var acc = start();
    for (var d = local; d < params.reduced; d += WG) { acc = step(acc, load4_x(base + d * inner)); }
    let all = workgroup_reduce(acc, local);
    if (local == 0u) { store4_y(quad, finish(all)); }
}

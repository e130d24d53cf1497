// round_rows: each element rounded to the nearest of 256 levels that its row has; a workgroup a row.
//
//   x, y [ROWS, D] float32
//   Dispatch: (ROWS) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const READERS: u32 = WG;

// The least and the greatest element so far, and zero.
struct acc_v { low: f32, high: f32 }
fn start() -> acc_v { return acc_v(0.0, 0.0); }
fn combine(a: acc_v, b: acc_v) -> acc_v { return acc_v(min(a.low, b.low), max(a.high, b.high)); }
$$ if subgroups
fn subgroup_reduce(a: acc_v) -> acc_v { return acc_v(subgroupMin(a.low), subgroupMax(a.high)); }
$$ endif
{$ include "_workgroup_reduce.wgsl" $}
{$ include "_levels.wgsl" $}
{$ include "_each_workgroup.wgsl" $}

fn units() -> u32 { return params.rows; }
fn compute(row: u32, local: u32) {
    let base = row * params.depth;
    var own = start();
    for (var d = local; d < params.depth; d += WG) {
        let v = load_x(base + d);
        own = combine(own, acc_v(v, v));
    }
    let all = workgroup_reduce(own, local);
    let levels = levels_of(all.low, all.high);
    for (var d = local; d < params.depth; d += WG) { store_y(base + d, nearest_level(load_x(base + d), levels)); }
}

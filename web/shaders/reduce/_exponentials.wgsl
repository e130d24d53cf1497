// _exponentials: acc_v, start(), combine(acc, acc) and subgroup_reduce(acc) of sums of e^x, as _workgroup_reduce.wgsl
// needs them.

// (largest x, sum of e^(x - largest)) of a part of the line.
struct acc_v { top: f32, sum: f32 }
fn start() -> acc_v { return acc_v(-3.4028234663852886e38, 0.0); }
fn combine(a: acc_v, b: acc_v) -> acc_v {
    let top = max(a.top, b.top);
    return acc_v(top, a.sum * exp(a.top - top) + b.sum * exp(b.top - top));
}
$$ if subgroups
fn subgroup_reduce(a: acc_v) -> acc_v {
    let top = subgroupMax(a.top);
    return acc_v(top, subgroupAdd(a.sum * exp(a.top - top)));
}
$$ endif

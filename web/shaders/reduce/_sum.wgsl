// _sum: start(), combine(acc, acc) and subgroup_reduce(acc) of sums, as _workgroup_reduce.wgsl needs them.
//
//   acc_v, a number or a vector, is the includer's.

fn start() -> acc_v { return acc_v(); }
fn combine(a: acc_v, b: acc_v) -> acc_v { return a + b; }
$$ if subgroups
fn subgroup_reduce(a: acc_v) -> acc_v { return subgroupAdd(a); }
$$ endif

// _reduce_subgroup: `subgroup_reduce(acc)` combines the partial results of a subgroup, for each of its invocations.

$$ if op == "log_sum_exp"
fn subgroup_reduce(a: acc_v) -> acc_v {
    let top = subgroupMax(a.top);
    return acc_v(top, subgroupAdd(a.sum * exp(a.top - top)));
}
$$ elif op == "whole_mean"
fn subgroup_reduce(a: acc_v) -> acc_v { return carried(subgroupAdd(a.whole), subgroupAdd(a.part)); }
$$ elif op == "any"
fn subgroup_reduce(a: acc_v) -> acc_v { return subgroupMax(a); }
$$ elif op == "all"
fn subgroup_reduce(a: acc_v) -> acc_v { return subgroupMin(a); }
$$ elif op in ("quantized_sum", "stored_sum")
fn subgroup_reduce(a: acc_v) -> acc_v { return subgroupAdd(a); }
$$ endif

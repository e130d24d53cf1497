// _mean_and_squares: what _workgroup_reduce combines to the mean of elements and their squared distances from it.
//
// How many elements so far, their mean, and the sum of squared distances from it. RMS norm leaves the mean at zero.
struct acc_v { count: f32, mean: f32, squares: f32 }
fn start() -> acc_v { return acc_v(0.0, 0.0, 0.0); }
fn combine(a: acc_v, b: acc_v) -> acc_v {
    let count = a.count + b.count;
    let apart = b.mean - a.mean;
    let part = b.count / max(count, 1.0);
    return acc_v(count, a.mean + apart * part, a.squares + b.squares + apart * apart * a.count * part);
}
$$ if subgroups
fn subgroup_reduce(a: acc_v) -> acc_v {
    let count = subgroupAdd(a.count);
    let mean = subgroupAdd(a.mean * (a.count / max(count, 1.0)));
    let apart = a.mean - mean;
    return acc_v(count, mean, subgroupAdd(a.squares + a.count * apart * apart));
}
$$ endif

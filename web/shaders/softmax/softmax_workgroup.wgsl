// softmax_workgroup: one workgroup computes one line together, for lines much longer than a workgroup.
//
//   x, y [O, D, I] float32, lines along D
//   Dispatch: (O*I) workgroups

$$ if subgroups
enable subgroups;
$$ endif
{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const READERS: u32 = WG;

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
{$ include "_workgroup_reduce.wgsl" $}
{$ include "_each_workgroup.wgsl" $}

fn units() -> u32 { return params.lines; }
fn compute(line: u32, local: u32) {
    let base = line / params.inner * params.depth * params.inner + line % params.inner;

    var own = start();
    for (var d = local; d < params.depth; d += WG) {
        own.top = max(own.top, params.beta * load_x(base + d * params.inner));
    }
    for (var d = local; d < params.depth; d += WG) {
        own.sum += exp(params.beta * load_x(base + d * params.inner) - own.top);
    }
    let all = workgroup_reduce(own, local);

    for (var d = local; d < params.depth; d += WG) {
        let shifted = params.beta * load_x(base + d * params.inner) - all.top;
        $$ if logarithm
        store_y(base + d * params.inner, shifted - log(all.sum));
        $$ else
        store_y(base + d * params.inner, exp(shifted) / all.sum);
        $$ endif
    }
}

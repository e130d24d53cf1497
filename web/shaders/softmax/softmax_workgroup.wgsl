// softmax_workgroup: one workgroup computes one line together, for lines much longer than a workgroup.
//
//   x, y [O, D, I] float32, lines along D
//   Dispatch: (O*I) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const READERS: u32 = WG;

{$ include "_exponentials.wgsl" $}
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

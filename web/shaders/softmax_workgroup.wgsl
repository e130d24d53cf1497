// softmax_workgroup: one workgroup computes one line together, for lines much longer than a workgroup.
//
//   x, y [O, D, I] float32, lines along D
//   Dispatch: (O*I) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

var<workgroup> shared_values: array<f32, WG>;

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    // Spare workgroups of a folded dispatch repeat the last line: no barrier may stand behind a return.
    let line = min(group.x + group.y * groups.x, params.lines - 1u);
    let base = line / params.inner * params.depth * params.inner + line % params.inner;

    var top = -3.4028234663852886e38;
    for (var d = local; d < params.depth; d += WG) { top = max(top, params.beta * load_x(base + d * params.inner)); }
    shared_values[local] = top;
    workgroupBarrier();
    for (var half = WG / 2u; half > 0u; half /= 2u) {
        if (local < half) { shared_values[local] = max(shared_values[local], shared_values[local + half]); }
        workgroupBarrier();
    }
    top = shared_values[0];
    workgroupBarrier();

    var sum = 0.0;
    for (var d = local; d < params.depth; d += WG) { sum += exp(params.beta * load_x(base + d * params.inner) - top); }
    shared_values[local] = sum;
    workgroupBarrier();
    for (var half = WG / 2u; half > 0u; half /= 2u) {
        if (local < half) { shared_values[local] += shared_values[local + half]; }
        workgroupBarrier();
    }
    sum = shared_values[0];

    for (var d = local; d < params.depth; d += WG) {
        let shifted = params.beta * load_x(base + d * params.inner) - top;
        $$ if logarithm
        store_y(base + d * params.inner, shifted - log(sum));
        $$ else
        store_y(base + d * params.inner, exp(shifted) / sum);
        $$ endif
    }
}

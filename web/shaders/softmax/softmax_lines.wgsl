// softmax_lines: one invocation computes one line: e^(beta*x) / sum of e^(beta*x), or the logarithm of that.
//
//   x, y [O, D, I] float32, lines along D
//   Dispatch: (O*I / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let line = gid.x + gid.y * groups.x * WG;
    if (line >= params.lines) { return; }
    let base = line / params.inner * params.depth * params.inner + line % params.inner;
    var top = params.beta * load_x(base);
    for (var d = 1u; d < params.depth; d++) {
        top = max(top, params.beta * load_x(base + d * params.inner));
    }
    var sum = 0.0;
    for (var d = 0u; d < params.depth; d++) {
        sum += exp(params.beta * load_x(base + d * params.inner) - top);
    }
    for (var d = 0u; d < params.depth; d++) {
        let shifted = params.beta * load_x(base + d * params.inner) - top;
        $$ if logarithm
        store_y(base + d * params.inner, shifted - log(sum));
        $$ else
        store_y(base + d * params.inner, exp(shifted) / sum);
        $$ endif
    }
}

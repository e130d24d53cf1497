// cumulative_sum: running sums along an axis; one invocation walks one line.
//
//   x, y [O, D, I] of a 32-bit type; `exclusive` leaves the element itself out, `backwards` sums from the end
//   Dispatch: (O*I / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let line = gid.x + gid.y * groups.x * WG;
    if (line >= params.lines) { return; }
    let base = line / params.inner * params.depth * params.inner + line % params.inner;
    var sum = x_t(0);
    for (var k = 0u; k < params.depth; k++) {
        $$ if backwards
        let at = base + (params.depth - 1u - k) * params.inner;
        $$ else
        let at = base + k * params.inner;
        $$ endif
        let v = load_x(at);
        $$ if exclusive
        store_y(at, sum);
        sum += v;
        $$ else
        sum += v;
        store_y(at, sum);
        $$ endif
    }
}

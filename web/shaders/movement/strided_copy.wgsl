// strided_copy: y[target_offset + sum(index * target_stride)] = x[source_offset + sum(index * source_stride)]
// for every index of a box of at most 8 dimensions; the elements of y outside the box are zeros or stay.
//
//   x, y  any shape, moved bit for bit; four consecutive elements of y an invocation
//   Needs: dimensions ordered by falling target stride, each at least size * stride of the next.
//   Dispatch: (quads of y from first_quad on / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const RANK: u32 = {{ rank }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (index >= params.quads) { return; }
    let quad = params.first_quad + index;
    $$ if update
    var v = load4_y(quad);
    $$ else
    var v: y_v;
    $$ endif
    for (var lane = 0u; lane < 4u; lane++) {
        let i = 4u * quad + lane;
        var inside = i >= params.target_offset;
        var rest = i - min(i, params.target_offset);
        var at = params.source_offset;
        for (var d = 0u; d < RANK; d++) {
            let step = target_stride_at(d);
            let k = rest / step;
            rest -= k * step;
            inside = inside && k < size_at(d);
            at += i32(k) * source_stride_at(d);
        }
        if (inside && rest == 0u) { v[lane] = load_x(u32(at)); }
    }
    store4_y(quad, v);
}

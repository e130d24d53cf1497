// cast: converts four consecutive elements an invocation, as NumPy does: towards zero and saturating.
//
//   x [count] of one type, y [count] of another
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

$$ if rule == "to_bool"
fn convert(x: x_v) -> y_v { return select(y_v(0), y_v(1), x != x_v()); }
$$ elif rule == "saturate"
// The bounds are floats inside the integer's range, so the conversion itself never overflows; NaN gives 0.
fn convert(x: x_v) -> y_v {
    let inside = clamp(trunc(x), vec4<f32>(params.low), vec4<f32>(params.high));
    return y_v(select(vec4<f32>(0.0), inside, x == x));
}
$$ else
fn convert(x: x_v) -> y_v { return y_v(x); }
$$ endif

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    store4_y(quad, convert(load4_x(quad)));
}

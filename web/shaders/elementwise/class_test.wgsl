// class_test: 1 where the bits of a float are those of an infinity or of a NaN (WGSL may assume neither exists).
//
//   x [count] bits of floats, y [count] bool; INFINITE is the pattern of infinity without its sign
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const MAGNITUDE: u32 = {{ magnitude }}u;
const INFINITE: u32 = {{ infinite }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    let bits = load4_x(quad) & vec4<u32>(MAGNITUDE);
    $$ if kind == "is_nan"
    store4_y(quad, select(y_v(0), y_v(1), bits > vec4<u32>(INFINITE)));
    $$ else
    store4_y(quad, select(y_v(0), y_v(1), bits == vec4<u32>(INFINITE)));
    $$ endif
}

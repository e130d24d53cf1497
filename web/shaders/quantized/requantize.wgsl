// requantize: stored integers of one scale in another: y = saturate(round_even((x - x_zero) * scale) + y_zero).
//
//   x, y  [count] integers, four consecutive elements an invocation
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    let v = vec4<i32>(round(vec4<f32>(load4_x(quad) - params.x_zero) * params.scale)) + params.y_zero;
    store4_y(quad, clamp(v, vec4<i32>(params.low), vec4<i32>(params.high)));
}

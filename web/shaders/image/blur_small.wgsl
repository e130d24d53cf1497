// blur_small: a small picture out of focus: weights of a bell whose standard deviation is `sigma` pixels; its outermost
//   pixels go on around it.
//
//   x, y  [SH, SW] vec4 float32
//   Dispatch: (ceil(SW / WG), ceil(SH / WG))

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const REACH: i32 = {{ reach }};

@compute @workgroup_size(WG, WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.sw || gid.y >= params.sh) { return; }
    let last = vec2<i32>(i32(params.sw), i32(params.sh)) - 1;
    var sum = vec4<f32>();
    var weights = 0.0;
    for (var dy = -REACH; dy <= REACH; dy++) {
        for (var dx = -REACH; dx <= REACH; dx++) {
            let weight = exp(-f32(dx * dx + dy * dy) / (2.0 * params.sigma * params.sigma));
            let at = clamp(vec2<i32>(gid.xy) + vec2<i32>(dx, dy), vec2<i32>(), last);
            sum += weight * load4_x(u32(at.y) * params.sw + u32(at.x));
            weights += weight;
        }
    }
    store4_y(gid.y * params.sw + gid.x, sum / weights);
}

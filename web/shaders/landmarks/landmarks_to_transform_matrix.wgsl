// landmarks_to_transform_matrix: the map from an image of W x H pixels onto the upright box around landmarks.
//
//   x [1, L, 3] landmarks, subset [count] their numbers, y [1, 4, 4]
//   y = shift(center) * turn(-r) * scale * shift(-size / 2), where r turns left-to-right to the target angle
//   Dispatch: (1); one invocation does it all

{{ prelude }}

fn point(number: u32) -> vec2<f32> { return vec2<f32>(load_x(3u * number), load_x(3u * number + 1u)); }

@compute @workgroup_size(1)
fn main() {
    let across = point(params.right) - point(params.left);
    // The turn by r = target - atan2(across.y, across.x), without the angle.
    let long = max(length(across), 1e-30);
    let c = (params.target_cos * across.x + params.target_sin * across.y) / long;
    let s = (params.target_sin * across.x - params.target_cos * across.y) / long;
    var low = vec2<f32>(3.0e38);
    var high = vec2<f32>(-3.0e38);
    for (var i = 0u; i < params.count; i++) {
        let p = point(u32(load_subset(i)));
        let upright = vec2<f32>(c * p.x - s * p.y, s * p.x + c * p.y);
        low = min(low, upright);
        high = max(high, upright);
    }
    let middle = (low + high) * 0.5;
    let center = vec2<f32>(c * middle.x + s * middle.y, c * middle.y - s * middle.x);
    let size = vec2<f32>(params.width, params.height);
    let scale = vec2<f32>(params.scale_x, params.scale_y) * (high - low) / size;
    let first = vec2<f32>(c * scale.x, s * scale.y);
    let second = vec2<f32>(-s * scale.x, c * scale.y);
    store4_y(0u, vec4<f32>(first, 0.0, center.x - dot(first, size * 0.5)));
    store4_y(1u, vec4<f32>(second, 0.0, center.y - dot(second, size * 0.5)));
    store4_y(2u, vec4<f32>(0.0, 0.0, 1.0, 0.0));
    store4_y(3u, vec4<f32>(0.0, 0.0, 0.0, 1.0));
}

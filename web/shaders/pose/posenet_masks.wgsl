// posenet_masks: 1 where a pixel's long offsets lead to that pose, else 0.
//
//   x [H, W, 34] long offsets, keypoints [D, 17, 2] in image pixels, found [1], y [D, H, W]
//   One invocation computes one pixel for all poses.
//   Dispatch: (H*W / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const KEYPOINTS: u32 = {{ keypoints }}u;
const STEPS: u32 = 3u;
{$ include "_posenet_sample.wgsl" $}

fn moved(p: vec2<f32>, k: u32) -> vec2<f32> {
    let c = cell_of(p);
    let at = vec4<u32>(c.top_left, c.top_right, c.bottom_left, c.bottom_right) * 2u * KEYPOINTS + k;
    let down = vec4<f32>(load_x(at.x), load_x(at.y), load_x(at.z), load_x(at.w));
    let far = at + KEYPOINTS;
    let across = vec4<f32>(load_x(far.x), load_x(far.y), load_x(far.z), load_x(far.w));
    return clamp_point(p + vec2<f32>(dot(down, c.weights), dot(across, c.weights)) * params.cell);
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let pixel = gid.x + gid.y * groups.x * WG;
    if (pixel >= params.h * params.w) { return; }
    var embedding: array<vec2<f32>, KEYPOINTS>;
    for (var k = 0u; k < KEYPOINTS; k++) {
        var at = vec2<f32>(f32(pixel / params.w), f32(pixel % params.w));
        for (var i = 0u; i < STEPS; i++) { at = moved(at, k); }
        embedding[k] = at * params.stride;
    }
    let count = u32(load_found(0u));
    var nearest = count;
    var least = 3.0e38;
    for (var d = 0u; d < count; d++) {
        var distance = 0.0;
        for (var k = 0u; k < KEYPOINTS; k++) {
            let at = 2u * (d * KEYPOINTS + k);
            let away = vec2<f32>(load_keypoints(at), load_keypoints(at + 1u)) - embedding[k];
            distance += dot(away, away);
        }
        if (distance < least) {
            least = distance;
            nearest = d;
        }
    }
    for (var d = 0u; d < params.max_detections; d++) {
        store_y(d * params.h * params.w + pixel, select(0.0, 1.0, d == nearest && d < count));
    }
}

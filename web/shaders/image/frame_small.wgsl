// frame_small: a small copy of a texture or a video frame: each of its pixels is the mean of 16 samples of its cell.
//
//   y  [SH, SW] vec4 float32: red, green, blue in 0..1 and 1
//   Dispatch: (ceil(SW / WG), ceil(SH / WG))

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

$$ if external
@group(0) @binding(2) var picture: texture_external;
fn texel(at: vec2<i32>) -> vec3<f32> { return textureLoad(picture, at).rgb; }
$$ else
@group(0) @binding(2) var picture: texture_2d<f32>;
fn texel(at: vec2<i32>) -> vec3<f32> { return textureLoad(picture, at, 0).rgb; }
$$ endif

@compute @workgroup_size(WG, WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.sw || gid.y >= params.sh) { return; }
    let held = vec2<f32>(textureDimensions(picture));
    let cell = held / vec2<f32>(f32(params.sw), f32(params.sh));
    var sum = vec3<f32>();
    for (var i = 0u; i < 16u; i++) {
        let at = (vec2<f32>(gid.xy) + (vec2<f32>(f32(i % 4u), f32(i / 4u)) + 0.5) / 4.0) * cell;
        sum += texel(vec2<i32>(min(at, held - 1.0)));
    }
    store4_y(gid.y * params.sw + gid.x, vec4<f32>(sum / 16.0, 1.0));
}

// mask_paint: a texture or a video frame, painted as its mask says: people in front of what is behind them.
//
//   m  [MH, MW] float32   how likely each pixel is in front, 0..1: nothing below `least`, all from `most` on
//   b  [SH, SW] vec4      the picture out of focus, read if `blurred`
//   In front the picture with so much of `front` over it, behind it the same with `back`, or the picture out of focus,
//   or with `cut` nothing: transparent. Both are spread over the canvas bilinearly; whole numbers + 0.5 are centres.
//   Dispatch: (ceil(width / WG), ceil(height / WG))

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

$$ if external
@group(0) @binding(3) var picture: texture_external;
fn texel(at: vec2<i32>) -> vec3<f32> { return textureLoad(picture, at).rgb; }
$$ else
@group(0) @binding(3) var picture: texture_2d<f32>;
fn texel(at: vec2<i32>) -> vec3<f32> { return textureLoad(picture, at, 0).rgb; }
$$ endif
@group(0) @binding(4) var canvas: texture_storage_2d<rgba8unorm, write>;

struct Corners { at: vec4<u32>, weight: vec2<f32> }  // left upper, right upper, left lower, right lower

fn corners(part: vec2<f32>, width: u32, height: u32) -> Corners {
    let last = vec2<f32>(f32(width), f32(height)) - 1.0;
    let at = clamp(part * (last + 1.0) - 0.5, vec2<f32>(), last);
    let first = vec2<u32>(at);
    let next = min(first + 1u, vec2<u32>(last));
    let rows = vec2<u32>(first.y, next.y) * width;
    return Corners(vec4<u32>(rows.xx + vec2<u32>(first.x, next.x), rows.yy + vec2<u32>(first.x, next.x)), fract(at));
}

@compute @workgroup_size(WG, WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.width || gid.y >= params.height) { return; }
    let part = (vec2<f32>(gid.xy) + 0.5) / vec2<f32>(f32(params.width), f32(params.height));
    let of_mask = corners(part, params.mw, params.mh);
    let upper = mix(load_m(of_mask.at.x), load_m(of_mask.at.y), of_mask.weight.x);
    let lower = mix(load_m(of_mask.at.z), load_m(of_mask.at.w), of_mask.weight.x);
    let alpha = clamp((mix(upper, lower, of_mask.weight.y) - params.least) / (params.most - params.least), 0.0, 1.0);

    let seen = texel(vec2<i32>(part * vec2<f32>(textureDimensions(picture))));
    let front = mix(seen, vec3<f32>(params.front_r, params.front_g, params.front_b), params.front_a);
    if (params.cut != 0u) {
        textureStore(canvas, gid.xy, vec4<f32>(front * alpha, alpha));
        return;
    }
    var back = mix(seen, vec3<f32>(params.back_r, params.back_g, params.back_b), params.back_a);
    if (params.blurred != 0u) {
        let of_small = corners(part, params.sw, params.sh);
        let above = mix(load4_b(of_small.at.x), load4_b(of_small.at.y), of_small.weight.x);
        let below = mix(load4_b(of_small.at.z), load4_b(of_small.at.w), of_small.weight.x);
        back = mix(above, below, of_small.weight.y).rgb;
    }
    textureStore(canvas, gid.xy, vec4<f32>(mix(back, front, alpha), 1.0));
}

// picture: a texture or a video frame into a model's input: one affine map, bilinear, normalised.
//   Around the picture lies black, or with `edge` its outermost pixels go on. With `fixed`, positions are multiples of
//   1/32 pixel and samples of 1/255, as OpenCV makes them of bytes: u8_picture_to_f32.c has the same.
//
//   y  [OH, OW, 3] float32 = offset + scale * sample, samples in 0..1
//   The centre of output pixel (ox, oy) samples the picture, WIDTH x HEIGHT pixels, at
//   (ax*ox + ay*oy + a0, bx*ox + by*oy + b0), where whole numbers are the centres of its pixels.
//   A video frame may hold more or fewer pixels than it shows; the map is in those that it shows.
//   Dispatch: (ceil(OW / WG), ceil(OH / WG))

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

$$ if external
@group(0) @binding(2) var picture: texture_external;
fn texel(at: vec2<i32>) -> vec3<f32> { return textureLoad(picture, at).rgb; }
$$ else
@group(0) @binding(2) var picture: texture_2d<f32>;
fn texel(at: vec2<i32>) -> vec3<f32> { return textureLoad(picture, at, 0).rgb; }
$$ endif

fn load(at: vec2<i32>, size: vec2<i32>) -> vec3<f32> {
    $$ if edge
    return texel(clamp(at, vec2<i32>(), size - 1));
    $$ else
    if (any(at < vec2<i32>()) || any(at >= size)) { return vec3<f32>(); }
    return texel(at);
    $$ endif
}

@compute @workgroup_size(WG, WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>) {
    if (gid.x >= params.ow || gid.y >= params.oh) { return; }
    let o = vec2<f32>(gid.xy);
    var at = vec2<f32>(
        params.ax * o.x + params.ay * o.y + params.a0,
        params.bx * o.x + params.by * o.y + params.b0,
    );
    let held = vec2<f32>(textureDimensions(picture));
    let shown = vec2<f32>(params.width, params.height);
    if (any(held != shown)) { at = (at + 0.5) * (held / shown) - 0.5; }
    at = clamp(at, vec2<f32>(-2.0), held + 1.0);
    $$ if fixed
    at = round(at * 32.0) / 32.0;
    $$ endif
    let first = vec2<i32>(floor(at));
    let weight = at - floor(at);
    let size = vec2<i32>(held);
    let upper = mix(load(first, size), load(first + vec2<i32>(1, 0), size), weight.x);
    let lower = mix(load(first + vec2<i32>(0, 1), size), load(first + vec2<i32>(1, 1), size), weight.x);
    $$ if fixed
    // Samples are multiples of 1/1024 of a step: a quarter of that keeps rounding errors from moving a half.
    let sample = floor(mix(upper, lower, weight.y) * 255.0 + (0.5 + 0.25 / 1024.0)) / 255.0;
    $$ else
    let sample = mix(upper, lower, weight.y);
    $$ endif
    let value = params.offset + params.scale * sample;
    let to = 3u * (gid.y * params.ow + gid.x);
    store_y(to, value.r);
    store_y(to + 1u, value.g);
    store_y(to + 2u, value.b);
}

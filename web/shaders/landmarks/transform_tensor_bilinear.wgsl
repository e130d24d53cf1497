// transform_tensor_bilinear: y[oy, ox] = x sampled bilinearly at matrix * (ox, oy, 0, 1); zero outside the image.
//
//   x [1, IH, IW, C], matrix [4, 4], y [1, OH, OW, C]; `half` is 0.5 with half pixel centers, else 0
//   Four consecutive elements of y an invocation.
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

fn element(i: u32) -> y_t {
    let c = i % params.c;
    let ox = f32((i / params.c) % params.ow) + params.half;
    let oy = f32(i / (params.c * params.ow)) + params.half;
    let sx = load_matrix(0u) * ox + load_matrix(1u) * oy + load_matrix(3u) - params.half;
    let sy = load_matrix(4u) * ox + load_matrix(5u) * oy + load_matrix(7u) - params.half;
    if (!(sx >= 0.0 && sx <= f32(params.iw - 1u) && sy >= 0.0 && sy <= f32(params.ih - 1u))) { return 0.0; }
    let x0 = u32(sx);
    let y0 = u32(sy);
    let x1 = min(x0 + 1u, params.iw - 1u);
    let y1 = min(y0 + 1u, params.ih - 1u);
    let wx = sx - f32(x0);
    let wy = sy - f32(y0);
    let above = load_x((y0 * params.iw + x0) * params.c + c) * (1.0 - wx) + load_x((y0 * params.iw + x1) * params.c + c) * wx;
    let below = load_x((y1 * params.iw + x0) * params.c + c) * (1.0 - wx) + load_x((y1 * params.iw + x1) * params.c + c) * wx;
    return above * (1.0 - wy) + below * wy;
}

{$ include "_each_element.wgsl" $}

// resize_bilinear: four consecutive output elements an invocation, each between four input pixels.
//
//   x  [N, IH, IW, C]       y  [N, OH, OW, C]
//   Output pixel o samples (o + offset) * scale - offset; offset is 0.5 with half pixel centers, else 0.
//   Dispatch: (ceil(N*OH*OW*C / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

fn at(n: u32, iy: u32, ix: u32, c: u32) -> f32 {
    return load_x(((n * params.ih + iy) * params.iw + ix) * params.c + c);
}

fn element(i: u32) -> y_t {
    let c = i % params.c;
    let ox = (i / params.c) % params.ow;
    let oy = (i / (params.c * params.ow)) % params.oh;
    let n = i / (params.c * params.ow * params.oh);
    let sy = (f32(oy) + params.offset) * params.scale_h - params.offset;
    let sx = (f32(ox) + params.offset) * params.scale_w - params.offset;
    let y0 = min(u32(max(floor(sy), 0.0)), params.ih - 1u);
    let x0 = min(u32(max(floor(sx), 0.0)), params.iw - 1u);
    let y1 = min(y0 + 1u, params.ih - 1u);
    let x1 = min(x0 + 1u, params.iw - 1u);
    let fy = clamp(sy - f32(y0), 0.0, 1.0);
    let fx = clamp(sx - f32(x0), 0.0, 1.0);
    let above = at(n, y0, x0, c) * (1.0 - fx) + at(n, y0, x1, c) * fx;
    let below = at(n, y1, x0, c) * (1.0 - fx) + at(n, y1, x1, c) * fx;
    return above * (1.0 - fy) + below * fy;
}

{$ include "_each_element.wgsl" $}

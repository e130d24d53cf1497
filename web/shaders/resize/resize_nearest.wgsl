// resize_nearest: four consecutive output elements an invocation, each the nearest input pixel.
//
//   x  [N, IH, IW, C]       y  [N, OH, OW, C]     moved bit for bit
//   Output pixel o takes floor(o * scale), floor((o + 0.5) * scale) with half pixel centers, or
//   round(o * scale) (ties up) with aligned corners: floor((o + before) * scale + after).
//   Dispatch: (ceil(N*OH*OW*C / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

fn element(i: u32) -> y_t {
    let c = i % params.c;
    let ox = (i / params.c) % params.ow;
    let oy = (i / (params.c * params.ow)) % params.oh;
    let n = i / (params.c * params.ow * params.oh);
    let sy = floor((f32(oy) + params.before) * params.scale_h + params.after);
    let sx = floor((f32(ox) + params.before) * params.scale_w + params.after);
    let iy = min(u32(max(sy, 0.0)), params.ih - 1u);
    let ix = min(u32(max(sx, 0.0)), params.iw - 1u);
    return load_x(((n * params.ih + iy) * params.iw + ix) * params.c + c);
}

{$ include "_each_element.wgsl" $}

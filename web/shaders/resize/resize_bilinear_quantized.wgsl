// resize_bilinear_quantized: bilinear samples of stored integers with weights of 11 bits, ties up.
//
//   x [N, IH, IW, C], y [N, OH, OW, C] integers; four consecutive elements of y an invocation
//   rows [OH, 2] and columns [OW, 2]: the first of the two neighbours and the weight of the second in 2048ths
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

fn at(n: u32, iy: u32, ix: u32, c: u32) -> i32 {
    return load_x(((n * params.ih + iy) * params.iw + ix) * params.c + c);
}

fn element(i: u32) -> y_t {
    let c = i % params.c;
    let ox = (i / params.c) % params.ow;
    let oy = (i / (params.c * params.ow)) % params.oh;
    let n = i / (params.c * params.ow * params.oh);
    let y0 = u32(load_rows(2u * oy));
    let x0 = u32(load_columns(2u * ox));
    let y1 = min(y0 + 1u, params.ih - 1u);
    let x1 = min(x0 + 1u, params.iw - 1u);
    let wy = load_rows(2u * oy + 1u);
    let wx = load_columns(2u * ox + 1u);
    let left = at(n, y0, x0, c) * 2048 + (at(n, y1, x0, c) - at(n, y0, x0, c)) * wy;
    let right = at(n, y0, x1, c) * 2048 + (at(n, y1, x1, c) - at(n, y0, x1, c)) * wy;
    return (left * 2048 + (right - left) * wx + (1 << 21u)) >> 22u;
}

{$ include "_each_element.wgsl" $}

// max_unpool2d: y[oy, ox] = the x whose winning tap lies there, else 0; of several the last in row-major order.
//
//   x [N, IH, IW, C] moved bit for bit, taps [N, IH, IW, C] floats (ky*KW + kx, truncated), y [N, OH, OW, C]
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const KH: i32 = {{ kh }};
const KW: i32 = {{ kw }};

fn element(at: u32) -> y_t {
    let c = at % params.c;
    let ox = i32((at / params.c) % params.ow) + params.pad_left;
    let oy = i32((at / (params.c * params.ow)) % params.oh) + params.pad_top;
    let n = at / (params.c * params.ow * params.oh);
    // Falling input rows and columns: the first hit is the last in row-major order.
    for (var ky = 0; ky < KH; ky++) {
        let iy = (oy - ky) / params.stride_h;
        if (oy < ky || iy * params.stride_h != oy - ky || iy >= params.ih) { continue; }
        for (var kx = 0; kx < KW; kx++) {
            let ix = (ox - kx) / params.stride_w;
            if (ox < kx || ix * params.stride_w != ox - kx || ix >= params.iw) { continue; }
            let source = ((n * u32(params.ih) + u32(iy)) * u32(params.iw) + u32(ix)) * params.c + c;
            if (i32(load_taps(source)) == ky * KW + kx) { return load_x(source); }
        }
    }
    return y_t();
}

{$ include "_each_element.wgsl" $}

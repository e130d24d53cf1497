// pool2d_any: pooling with any number of channels; four consecutive output elements an invocation.
//
//   x  [N, IH, IW, C]   read element by element      y  [N, OH, OW, C]   written in quads
//   Dispatch: (ceil(N*OH*OW*C / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
{$ include "_pool.wgsl" $}

fn element(i: u32) -> y_t {
    let c = i % params.c;
    let pixel = i / params.c;
    let n = pixel / (params.oh * params.ow);
    let top = i32((pixel / params.ow) % params.oh * params.stride_h) - params.pad_top;
    let left = i32(pixel % params.ow * params.stride_w) - params.pad_left;
    var acc = start();
    var taps = 0u;
    for (var ky = 0u; ky < KH; ky++) {
        let iy = top + i32(ky * params.dilation_h);
        if (iy < 0 || iy >= i32(params.ih)) { continue; }
        for (var kx = 0u; kx < KW; kx++) {
            let ix = left + i32(kx * params.dilation_w);
            if (ix < 0 || ix >= i32(params.iw)) { continue; }
            acc = step(acc, x_v(load_x(((n * params.ih + u32(iy)) * params.iw + u32(ix)) * params.c + c)));
            taps += 1u;
        }
    }
    return settle(acc, taps).x;
}

{$ include "_each_element.wgsl" $}

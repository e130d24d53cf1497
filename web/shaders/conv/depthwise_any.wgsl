// depthwise_any: any channels, any multiplier; four consecutive output elements an invocation.
//
//   x  [N, IH, IW, C]            read element by element
//   w  [KH, KW, C * multiplier]  output channel co reads input channel co / multiplier
//   y  [N, OH, OW, CO]           Padded taps count as 0.
//   Dispatch: (ceil(N*OH*OW*CO / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
{$ include "_epilogue_one.wgsl" $}

fn element(i: u32) -> y_t {
    let co = i % params.co;
    let pixel = i / params.co;
    let n = pixel / (params.oh * params.ow);
    let top = i32((pixel / params.ow) % params.oh * params.stride_h) - params.pad_top;
    let left = i32(pixel % params.ow * params.stride_w) - params.pad_left;
    var sum = w_t();
    for (var ky = 0u; ky < KH; ky++) {
        let iy = top + i32(ky * params.dilation_h);
        if (iy < 0 || iy >= i32(params.ih)) { continue; }
        for (var kx = 0u; kx < KW; kx++) {
            let ix = left + i32(kx * params.dilation_w);
            if (ix < 0 || ix >= i32(params.iw)) { continue; }
            let at = ((n * params.ih + u32(iy)) * params.iw + u32(ix)) * params.ci + co / params.multiplier;
            sum += input1(at) * load_w((ky * KW + kx) * params.co + co);
        }
    }
    return finish_one(sum, pixel, co);
}

{$ include "_each_element.wgsl" $}

// _requantize_sum: the rounding of an integer sum of products to stored integers.
//
//   y = saturate(round_even(f32(sum + bias) * scale[c]) + y_zero), as ai-edge-litert's default delegate rounds
//   finish(sum, pixel, c4) for four channels, finish_one(sum, pixel, c) for one
//   Needs: bindings scale [CO] and, if has_bias, bias [CO]; params y_zero, low, high.

fn finish(sum: vec4<i32>, pixel: u32, c4: u32) -> vec4<i32> {
    var v = sum;
    $$ if has_bias
    v += load4_bias(c4);
    $$ endif
    let scaled = vec4<i32>(round(vec4<f32>(v) * load4_scale(c4))) + params.y_zero;
    return clamp(scaled, vec4<i32>(params.low), vec4<i32>(params.high));
}

fn finish_one(sum: i32, pixel: u32, c: u32) -> i32 {
    var v = sum;
    $$ if has_bias
    v += load_bias(c);
    $$ endif
    return clamp(i32(round(f32(v) * load_scale(c))) + params.y_zero, params.low, params.high);
}

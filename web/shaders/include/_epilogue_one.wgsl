// _epilogue_one: as _epilogue, for a single channel c of a pixel, where quads would straddle groups or rows.
//
//   finish_one(sum, pixel, c) = activation(sum + bias[c] + residual[pixel, c]);  Needs: as _epilogue

$$ if quantized
{$ include "_requantize.wgsl" $}
$$ else
{$ include "_activation.wgsl" $}
{$ include "_late_bound.wgsl" $}
fn input1(i: u32) -> x_t { return load_x(i); }
fn input4(q: u32) -> x_v { return load4_x(q); }
fn finish_one(sum: f32, pixel: u32, c: u32) -> f32 {
    var v = sum;
    $$ if scaled
    v *= load_scales(c);
    $$ endif
    $$ if has_bias
    v += load_bias(c);
    $$ endif
    $$ if residual != "none" and late != "sum"
    if (c < params.residual_c) { v += load_residual(pixel * params.residual_c + c); }
    $$ endif
    $$ if activation == "prelu"
    v = select(v * load_slope(c), v, v >= 0.0);
    $$ endif
    v = activate(vec4<f32>(v)).x;
    $$ if late == "larger" or late == "smaller"
    v = bounded(vec4<f32>(v)).x;
    $$ elif late == "sum"
    if (c < params.residual_c) { v += load_residual(pixel * params.residual_c + c); }
    $$ endif
    return v;
}
$$ endif

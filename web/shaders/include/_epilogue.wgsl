// _epilogue: what happens to a sum of products before it is stored.
//
//   finish(sum, pixel, c4) = activation(sum + bias + residual) for channels 4*c4..4*c4+3 of a pixel; the residual is
//   added to the activation's result if LATE is "sum"; "larger" and "smaller" compare that with params.late_bound, and a
//   NaN stays one
//   input1(i), input4(q) = an element, a quad of x as the sum takes them
//   bias and slope (prelu's) [CO]; residual [pixels, RC] may have fewer channels than y: the rest counts as 0.
//   scales [CO] of weights that are stored as bytes.
//   Needs: bindings x and, by the variables, bias, residual, slope, scales; params.residual_c where there is a residual.

$$ if quantized
{$ include "_requantize.wgsl" $}
$$ else
{$ include "_activation.wgsl" $}
{$ include "_late_bound.wgsl" $}
fn input1(i: u32) -> x_t { return load_x(i); }
fn input4(q: u32) -> x_v { return load4_x(q); }
$$ if residual == "quads"
fn residual_at(pixel: u32, c4: u32) -> vec4<f32> {
    if (c4 >= params.residual_c / 4u) { return vec4<f32>(0.0); }
    return load4_residual(pixel * (params.residual_c / 4u) + c4);
}
$$ elif residual == "elements"
fn residual_at(pixel: u32, c4: u32) -> vec4<f32> {
    var v = vec4<f32>(0.0);
    for (var lane = 0u; lane < 4u; lane++) {
        let c = 4u * c4 + lane;
        if (c < params.residual_c) { v[lane] = load_residual(pixel * params.residual_c + c); }
    }
    return v;
}
$$ elif residual == "pooled"
{$ include "_pooled_residual.wgsl" $}
$$ endif

fn finish(sum: vec4<f32>, pixel: u32, c4: u32) -> vec4<f32> {
    var v = sum;
    $$ if scaled
    v *= load4_scales(c4);
    $$ endif
    $$ if has_bias
    v += load4_bias(c4);
    $$ endif
    $$ if residual != "none" and late != "sum"
    v += residual_at(pixel, c4);
    $$ endif
    $$ if activation == "prelu"
    v = select(v * load4_slope(c4), v, v >= vec4<f32>(0.0));
    $$ endif
    $$ if late == "sum"
    return activate(v) + residual_at(pixel, c4);
    $$ elif late != "no"
    return bounded(activate(v));
    $$ else
    return activate(v);
    $$ endif
}
$$ endif

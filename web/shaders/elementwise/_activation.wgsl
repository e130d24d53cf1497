// _activation: `activate(v)`, the activation that a step carries in its epilogue (not prelu: it needs a slope).
//
//   v is four numbers; clamps, hard_swish, sigmoid, silu, tanh, gelu and gelu_tanh, which is by tanh.
//   Needs: params.low and params.high where it is a clamp by "bounds", which may be infinite; a NaN stays one there.

$$ if activation == "bounds"
fn activate(v: vec4<f32>) -> vec4<f32> {
    let low = vec4<f32>(params.low);
    let high = vec4<f32>(params.high);
    let raised = select(v, low, v < low);
    return select(raised, high, raised > high);
}
$$ elif activation == "relu"
fn activate(v: vec4<f32>) -> vec4<f32> { return max(v, vec4<f32>(0.0)); }
$$ elif activation == "relu6"
fn activate(v: vec4<f32>) -> vec4<f32> { return clamp(v, vec4<f32>(0.0), vec4<f32>(6.0)); }
$$ elif activation == "relu_n1_to_1"
fn activate(v: vec4<f32>) -> vec4<f32> { return clamp(v, vec4<f32>(-1.0), vec4<f32>(1.0)); }
$$ elif activation == "hard_swish"
fn activate(v: vec4<f32>) -> vec4<f32> { return v * clamp(v + 3.0, vec4<f32>(0.0), vec4<f32>(6.0)) / 6.0; }
$$ elif activation == "sigmoid"
// exp(-|v|) never overflows.
fn activate(v: vec4<f32>) -> vec4<f32> {
    let e = exp(-abs(v));
    return select(e, vec4<f32>(1.0), v >= vec4<f32>(0.0)) / (1.0 + e);
}
$$ elif activation == "silu"
fn activate(v: vec4<f32>) -> vec4<f32> {
    let e = exp(-abs(v));
    return v * select(e, vec4<f32>(1.0), v >= vec4<f32>(0.0)) / (1.0 + e);
}
$$ elif activation == "tanh"
// WGSL's own tanh overflows to NaN on some drivers.
fn activate(v: vec4<f32>) -> vec4<f32> {
    let e = exp(-2.0 * abs(v));
    return sign(v) * (1.0 - e) / (1.0 + e);
}
$$ elif activation == "gelu"
{$ include "_erf.wgsl" $}
fn activate(v: vec4<f32>) -> vec4<f32> { return gelu(v); }
$$ elif activation == "gelu_tanh"
// (1 + tanh(t)) / 2 = sigmoid(2 t), and 2 sqrt(2/pi) = 1.59...
fn activate(v: vec4<f32>) -> vec4<f32> {
    let t = 1.5957691216057308 * (v + 0.044715 * v * v * v);
    let e = exp(-abs(t));
    return v * select(e, vec4<f32>(1.0), t >= vec4<f32>(0.0)) / (1.0 + e);
}
$$ else
fn activate(v: vec4<f32>) -> vec4<f32> { return v; }
$$ endif

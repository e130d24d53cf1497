// _erf: the error function and what is made of it: erf(x), erfc(x), gelu(x) of four numbers.
//
//   erfc(x) = t * exp(-x*x + P(t)) with t = 1/(1 + x/2), P fitted by Chebyshev nodes over x in [0, 20]
//   (largest relative error 3.2e-7), reflected below 0; erf by its Taylor series near 0.

fn erfc_positive(x: vec4<f32>) -> vec4<f32> {
    let t = 1.0 / (1.0 + 0.5 * x);
    var p = vec4<f32>(0.1867428869009018);
    p = p * t - 0.8955962061882019;
    p = p * t + 1.6315052509307861;
    p = p * t - 1.2873172760009766;
    p = p * t + 0.37494513392448425;
    p = p * t - 0.22291849553585052;
    p = p * t + 0.10496674478054047;
    p = p * t + 0.37310972809791565;
    p = p * t + 1.0000754594802856;
    p = p * t - 1.2655128240585327;
    return t * exp(p - x * x);
}

fn erfc(x: vec4<f32>) -> vec4<f32> {
    let v = erfc_positive(abs(x));
    return select(2.0 - v, v, x >= vec4<f32>(0.0));
}

fn erf(x: vec4<f32>) -> vec4<f32> {
    let s = x * x;
    let series = 1.0 - s / 3.0 * (1.0 - s * 0.3 * (1.0 - s * (5.0 / 21.0) * (1.0 - s * (7.0 / 36.0) * (1.0 - s * (9.0 / 55.0)))));
    return select(sign(x) * (1.0 - erfc_positive(abs(x))), 1.1283791670955126 * x * series, abs(x) < vec4<f32>(0.5));
}

// x/2 * (1 + erf(x / sqrt 2)); the far negative tail loses no digits.
fn gelu(x: vec4<f32>) -> vec4<f32> { return 0.5 * x * erfc(-0.7071067811865476 * x); }

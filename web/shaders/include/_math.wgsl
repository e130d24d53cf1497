// _math: functions whose precision WGSL leaves open, written out so that every driver gives about 1e-7.

// e^x - 1 without cancellation near 0.
fn exp_minus_1(x: vec4<f32>) -> vec4<f32> {
    let near = x * (1.0 + x / 2.0 * (1.0 + x / 3.0 * (1.0 + x / 4.0 * (1.0 + x / 5.0 * (1.0 + x / 6.0)))));
    return select(exp(x) - 1.0, near, abs(x) < vec4<f32>(0.25));
}

// log(1 + x) for x >= 0 without cancellation near 0.
fn log_plus_1(x: vec4<f32>) -> vec4<f32> {
    let near = x * (1.0 - x * (0.5 - x * (1.0 / 3.0 - x * (0.25 - x * (0.2 - x / 6.0)))));
    return select(log(1.0 + x), near, x < vec4<f32>(0.1));
}

fn sigmoid(x: vec4<f32>) -> vec4<f32> {
    let e = exp(-abs(x));
    return select(e, vec4<f32>(1.0), x >= vec4<f32>(0.0)) / (1.0 + e);
}

fn safe_tanh(x: vec4<f32>) -> vec4<f32> {
    let e = exp(-2.0 * abs(x));
    let s = x * x;
    let near = x * (1.0 - s * (1.0 / 3.0 - s * (2.0 / 15.0 - s * (17.0 / 315.0))));
    return select(sign(x) * (1.0 - e) / (1.0 + e), near, abs(x) < vec4<f32>(0.2));
}

// sin(x + turns * pi/2): reduced to [-pi/4, pi/4] by pi/2 in three parts, then Taylor.
fn quarter_sin(x: vec4<f32>, turns: i32) -> vec4<f32> {
    let k = round(x * 0.6366197723675814);
    let r = ((x - k * 1.5703125) - k * 4.83751296997070312e-4) - k * 7.549789948768648e-8;
    let s = r * r;
    let sine = r * (1.0 - s / 6.0 * (1.0 - s / 20.0 * (1.0 - s / 42.0 * (1.0 - s / 72.0))));
    let cosine = 1.0 - s / 2.0 * (1.0 - s / 12.0 * (1.0 - s / 30.0 * (1.0 - s / 56.0 * (1.0 - s / 90.0))));
    let quarter = (vec4<i32>(k) + turns) & vec4<i32>(3);
    let v = select(sine, cosine, (quarter & vec4<i32>(1)) == vec4<i32>(1));
    return select(v, -v, quarter >= vec4<i32>(2));
}

fn reduced_tan(x: vec4<f32>) -> vec4<f32> { return quarter_sin(x, 0) / quarter_sin(x, 1); }

// a // b and a % b of Python. A GPU's quotient may be off by a few units, so that x / x lies below 1: the next multiple of b
// then fits into a as well.
fn fits(rest: vec4<f32>, b: vec4<f32>) -> vec4<bool> {
    return (rest == vec4<f32>(0.0)) | ((rest < vec4<f32>(0.0)) == (b < vec4<f32>(0.0)));
}

fn floor_quotient(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let q = floor(a / b);
    return select(q, q + 1.0, fits(a - b * (q + 1.0), b));
}

fn modulo(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let q = floor(a / b);
    let rest = a - b * q;
    let after = a - b * (q + 1.0);
    return select(select(rest + b, rest, fits(rest, b)), after, fits(after, b));
}

// _reduce: what a reduction does with each element. acc_v holds four running results.
//
//   x_v four elements of x; start(), step(acc, x), combine(acc, acc) merges two partial results, across(acc) the
//   four of one, keep(acc, next, lanes) takes some lanes over; finish(acc) of params.reduced elements

$$ if op == "log_sum_exp"
// (largest so far, sum of e^(x - largest)) in one pass.
struct acc_v { top: vec4<f32>, sum: vec4<f32> }
fn start() -> acc_v { return acc_v(vec4<f32>(-3.4028234663852886e38), vec4<f32>(0.0)); }
fn combine(a: acc_v, b: acc_v) -> acc_v {
    let top = max(a.top, b.top);
    return acc_v(top, a.sum * exp(a.top - top) + b.sum * exp(b.top - top));
}
fn step(a: acc_v, x: x_v) -> acc_v { return combine(a, acc_v(x, vec4<f32>(1.0))); }
fn across(a: acc_v) -> acc_v {
    let top = max(max(a.top.x, a.top.y), max(a.top.z, a.top.w));
    return acc_v(vec4<f32>(top), vec4<f32>(dot(a.sum * exp(a.top - top), vec4<f32>(1.0))));
}
fn finish(a: acc_v) -> y_v { return a.top + log(a.sum); }
fn keep(a: acc_v, next: acc_v, lanes: vec4<bool>) -> acc_v {
    return acc_v(select(a.top, next.top, lanes), select(a.sum, next.sum, lanes));
}
$$ elif op == "whole_mean"
// Means of integers: the sum is whole * params.reduced + part with 0 <= part < params.reduced, so that none leaves
// 32 bits.
struct acc_v { whole: x_v, part: x_v }
fn start() -> acc_v { return acc_v(x_v(0), x_v(0)); }
fn carried(whole: x_v, part: x_v) -> acc_v {
    let count = x_v(x_t(params.reduced));
    return acc_v(whole + part / count, part % count);
}
fn combine(a: acc_v, b: acc_v) -> acc_v { return carried(a.whole + b.whole, a.part + b.part); }
fn step(a: acc_v, x: x_v) -> acc_v {
    let count = x_v(x_t(params.reduced));
    let part = x - x / count * count; // drivers disagree about % of negative numbers
    let below = part < x_v(0);
    return combine(a, acc_v(x / count - select(x_v(0), x_v(1), below), select(part, part + count, below)));
}
fn across(a: acc_v) -> acc_v {
    let pairs = carried(a.whole + a.whole.yxwz, a.part + a.part.yxwz);
    return carried(pairs.whole + pairs.whole.zwxy, pairs.part + pairs.part.zwxy);
}
// Cut towards zero, as integers are divided.
fn finish(a: acc_v) -> y_v {
    return y_v(a.whole + select(x_v(0), x_v(1), (a.whole < x_v(0)) & (a.part != x_v(0))));
}
fn keep(a: acc_v, next: acc_v, lanes: vec4<bool>) -> acc_v {
    return acc_v(select(a.whole, next.whole, lanes), select(a.part, next.part, lanes));
}
$$ elif op == "all"
alias acc_v = x_v;
fn start() -> acc_v { return acc_v(1); }
fn combine(a: acc_v, b: acc_v) -> acc_v { return min(a, b); }
fn step(a: acc_v, x: x_v) -> acc_v { return select(acc_v(0), a, x != x_v(0)); }
fn finish(a: acc_v) -> y_v { return a; }
$$ elif op == "any"
alias acc_v = x_v;
fn start() -> acc_v { return acc_v(0); }
fn combine(a: acc_v, b: acc_v) -> acc_v { return max(a, b); }
fn step(a: acc_v, x: x_v) -> acc_v { return select(acc_v(1), a, x == x_v(0)); }
fn finish(a: acc_v) -> y_v { return a; }
$$ elif op in ("stored_sum", "quantized_sum")
alias acc_v = x_v;
fn start() -> acc_v { return acc_v(0); }
fn combine(a: acc_v, b: acc_v) -> acc_v { return a + b; }
fn step(a: acc_v, x: x_v) -> acc_v { return a + (x - params.x_zero); }
$$ else
{{ formula }}
$$ endif
$$ if op == "stored_sum"
fn finish(a: acc_v) -> y_v { return a; }
$$ elif op == "quantized_sum"
// The scale holds the divisor of a mean. Ties go to even stored numbers, the zero point included.
fn finish(a: acc_v) -> y_v {
    let units = vec4<f32>(a) * params.scale;
    let below = floor(units);
    let rest = units - below;
    let v = vec4<i32>(below) + params.y_zero;
    let is_up = (rest > vec4<f32>(0.5)) | ((rest == vec4<f32>(0.5)) & ((v & vec4<i32>(1)) != vec4<i32>(0)));
    return clamp(v + select(vec4<i32>(0), vec4<i32>(1), is_up), vec4<i32>(params.low), vec4<i32>(params.high));
}
$$ endif
$$ if op not in ("log_sum_exp", "whole_mean")
fn across(a: acc_v) -> acc_v {
    return combine(combine(acc_v(a.x), acc_v(a.y)), combine(acc_v(a.z), acc_v(a.w)));
}
fn keep(a: acc_v, next: acc_v, lanes: vec4<bool>) -> acc_v { return select(a, next, lanes); }
$$ endif

// _pool: what a window is reduced to: start(), step(acc, x), settle(acc, taps) for four channels.
//
//   Padded taps are never stepped over: they do not win, nor count in the mean's divisor.
//   Needs: bindings x and y; params lowest, and for integers low and high: the bounds of a result.

$$ if quantized
fn bounded(v: x_v) -> y_v { return clamp(v, y_v(params.low), y_v(params.high)); }
$$ else
{$ include "_activation.wgsl" $}
fn bounded(v: x_v) -> y_v { return activate(v); }
$$ endif

$$ if kind == "max"
fn start() -> x_v { return x_v(params.lowest); }
fn step(acc: x_v, x: x_v) -> x_v { return max(acc, x); }
fn settle(acc: x_v, taps: u32) -> y_v { return bounded(acc); }
$$ elif kind == "l2"
fn start() -> x_v { return x_v(); }
fn step(acc: x_v, x: x_v) -> x_v { return acc + x * x; }
fn settle(acc: x_v, taps: u32) -> y_v { return bounded(sqrt(acc)); }
$$ elif kind == "mean"
fn start() -> x_v { return x_v(); }
fn step(acc: x_v, x: x_v) -> x_v { return acc + x; }
fn settle(acc: x_v, taps: u32) -> y_v { return bounded(acc / f32(taps)); }
$$ else
// The mean of stored integers, ties away from zero.
fn start() -> x_v { return x_v(); }
fn step(acc: x_v, x: x_v) -> x_v { return acc + x; }
fn settle(acc: x_v, taps: u32) -> y_v { return bounded((acc + sign(acc) * i32(taps / 2u)) / i32(taps)); }
$$ endif

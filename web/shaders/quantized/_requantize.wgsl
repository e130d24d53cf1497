// _requantize: the epilogue of integer products: inputs without their zero point, and the rounding of a sum.
//
//   input1(i), input4(q) = an element, a quad of x minus its zero point;  finish: _requantize_sum
//   Needs: a binding x of integers, params.x_zero, what _requantize_sum needs.

fn input1(i: u32) -> x_t { return load_x(i) - params.x_zero; }
fn input4(q: u32) -> x_v { return load4_x(q) - params.x_zero; }

{$ include "_requantize_sum.wgsl" $}

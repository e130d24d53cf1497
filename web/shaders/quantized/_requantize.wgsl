// _requantize: integer products: inputs without their zero point, and the rounding of a sum.

fn input1(i: u32) -> x_t { return load_x(i) - params.x_zero; }
fn input4(q: u32) -> x_v { return load4_x(q) - params.x_zero; }

{$ include "_requantize_sum.wgsl" $}

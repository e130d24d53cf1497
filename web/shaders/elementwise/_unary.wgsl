// _unary: `unary(x)`, the formula of the operator's row, after the functions that formulas use.
//
//   x is four operands, the result four elements of y; attributes of the operator are params.a and params.b
//   Needs: bindings x and y; params a and b.

{$ include "_math.wgsl" $}
{$ include "_erf.wgsl" $}
$$ if integer
fn keep_nan(x: x_v, v: x_v) -> x_v { return v; }
$$ else
{$ include "_keep_nan.wgsl" $}
$$ endif

{{ formula }}

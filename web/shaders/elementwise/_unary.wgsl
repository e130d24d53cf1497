// _unary: one row an operator. x_v and y_v are four elements of x and y; params.a and params.b are the attributes.

{$ include "_math.wgsl" $}
{$ include "_erf.wgsl" $}
$$ if is_float
// WGSL's min and max may lose a NaN.
fn keep_nan(x: x_v, v: x_v) -> x_v {
    return select(v, x, (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u));
}
$$ else
fn keep_nan(x: x_v, v: x_v) -> x_v { return v; }
$$ endif

$$ if op == "abs"
fn unary(x: x_v) -> y_v { return abs(x); }
$$ elif op == "ceil"
fn unary(x: x_v) -> y_v { return ceil(x); }
$$ elif op == "clamp"
fn unary(x: x_v) -> y_v { return keep_nan(x, clamp(x, x_v(params.a), x_v(params.b))); }
$$ elif op == "clamp_high"
fn unary(x: x_v) -> y_v { return keep_nan(x, min(x, x_v(params.b))); }
$$ elif op == "clamp_low"
fn unary(x: x_v) -> y_v { return keep_nan(x, max(x, x_v(params.a))); }
$$ elif op == "cos"
fn unary(x: x_v) -> y_v { return quarter_sin(x, 1); }
$$ elif op == "elu"
fn unary(x: x_v) -> y_v { return select(params.a * exp_minus_1(x), x, x > x_v()); }
$$ elif op == "erf"
fn unary(x: x_v) -> y_v { return erf(x); }
$$ elif op == "exp"
fn unary(x: x_v) -> y_v { return exp(x); }
$$ elif op == "floor"
fn unary(x: x_v) -> y_v { return floor(x); }
$$ elif op == "gelu"
fn unary(x: x_v) -> y_v { return 0.5 * x * erfc(-0.7071067811865476 * x); }
$$ elif op == "hard_sigmoid"
fn unary(x: x_v) -> y_v { return clamp(params.a * x + params.b, x_v(0.0), x_v(1.0)); }
$$ elif op == "hard_swish"
fn unary(x: x_v) -> y_v { return x * clamp(x + 3.0, x_v(0.0), x_v(6.0)) / 6.0; }
$$ elif op == "identity"
fn unary(x: x_v) -> y_v { return x; }
$$ elif op == "leaky_relu"
fn unary(x: x_v) -> y_v { return select(params.a * x, x, x >= x_v()); }
$$ elif op == "linear"
fn unary(x: x_v) -> y_v { return params.a * x + params.b; }
$$ elif op == "log"
fn unary(x: x_v) -> y_v { return log(x); }
$$ elif op == "logical_not"
fn unary(x: x_v) -> y_v { return select(y_v(0), y_v(1), x == x_v()); }
$$ elif op == "neg"
fn unary(x: x_v) -> y_v { return -x; }
$$ elif op == "reciprocal"
fn unary(x: x_v) -> y_v { return 1.0 / x; }
$$ elif op == "relu"
fn unary(x: x_v) -> y_v { return keep_nan(x, max(x, x_v())); }
$$ elif op == "relu6"
fn unary(x: x_v) -> y_v { return keep_nan(x, clamp(x, x_v(0), x_v(6))); }
$$ elif op == "relu_n1_to_1"
fn unary(x: x_v) -> y_v { return keep_nan(x, clamp(x, x_v(-1), x_v(1))); }
$$ elif op == "round_even"
fn unary(x: x_v) -> y_v { return round(x); }
$$ elif op == "rsqrt"
fn unary(x: x_v) -> y_v { return inverseSqrt(x); }
$$ elif op == "sigmoid"
fn unary(x: x_v) -> y_v { return sigmoid(x); }
$$ elif op == "sign"
fn unary(x: x_v) -> y_v { return sign(x); }
$$ elif op == "sin"
fn unary(x: x_v) -> y_v { return quarter_sin(x, 0); }
$$ elif op == "softplus"
fn unary(x: x_v) -> y_v { return max(x, x_v()) + log_plus_1(exp(-abs(x))); }
$$ elif op == "softsign"
fn unary(x: x_v) -> y_v { return x / (1.0 + abs(x)); }
$$ elif op == "sqrt"
fn unary(x: x_v) -> y_v { return sqrt(x); }
$$ elif op == "square"
fn unary(x: x_v) -> y_v { return x * x; }
$$ elif op == "tan"
fn unary(x: x_v) -> y_v { return quarter_sin(x, 0) / quarter_sin(x, 1); }
$$ elif op == "tanh"
fn unary(x: x_v) -> y_v { return safe_tanh(x); }
$$ endif

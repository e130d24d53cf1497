// _binary: one row an operator. x_v is four elements of a or b (one type), y_v of y.

alias x_v = a_v;

$$ if integer
// Drivers disagree about % of negative numbers and about division by zero: neither is used.
fn divided(a: x_v, b: x_v) -> x_v { return a / select(b, x_v(1), b == x_v(0)); }
$$ endif

$$ if op == "add"
fn binary(a: x_v, b: x_v) -> y_v { return a + b; }
$$ elif op == "div"
fn binary(a: x_v, b: x_v) -> y_v { return a / b; }
$$ elif op == "div_integer"
fn binary(a: x_v, b: x_v) -> y_v { return select(divided(a, b), x_v(0), b == x_v(0)); }
$$ elif op == "equal"
fn binary(a: x_v, b: x_v) -> y_v { return select(y_v(0), y_v(1), a == b); }
$$ elif op == "floor_div"
fn binary(a: x_v, b: x_v) -> y_v { return floor(a / b); }
$$ elif op == "floor_div_integer"
fn binary(a: x_v, b: x_v) -> y_v {
    let q = divided(a, b);
    let below = (q * b != a) & ((a < x_v(0)) != (b < x_v(0)));
    return select(q - select(x_v(0), x_v(1), below), x_v(0), b == x_v(0));
}
$$ elif op == "floor_mod"
fn binary(a: x_v, b: x_v) -> y_v { return a - b * floor(a / b); }
$$ elif op == "floor_mod_integer"
fn binary(a: x_v, b: x_v) -> y_v {
    let r = a - divided(a, b) * b;
    return select(r + select(x_v(0), b, (r != x_v(0)) & ((r < x_v(0)) != (b < x_v(0)))), x_v(0), b == x_v(0));
}
$$ elif op == "greater"
fn binary(a: x_v, b: x_v) -> y_v { return select(y_v(0), y_v(1), a > b); }
$$ elif op == "greater_equal"
fn binary(a: x_v, b: x_v) -> y_v { return select(y_v(0), y_v(1), a >= b); }
$$ elif op == "less"
fn binary(a: x_v, b: x_v) -> y_v { return select(y_v(0), y_v(1), a < b); }
$$ elif op == "less_equal"
fn binary(a: x_v, b: x_v) -> y_v { return select(y_v(0), y_v(1), a <= b); }
$$ elif op == "logical_and"
fn binary(a: x_v, b: x_v) -> y_v { return select(y_v(0), y_v(1), (a != x_v(0)) & (b != x_v(0))); }
$$ elif op == "logical_or"
fn binary(a: x_v, b: x_v) -> y_v { return select(y_v(0), y_v(1), (a != x_v(0)) | (b != x_v(0))); }
$$ elif op == "logical_xor"
fn binary(a: x_v, b: x_v) -> y_v { return select(y_v(0), y_v(1), (a != x_v(0)) != (b != x_v(0))); }
$$ elif op == "maximum"
fn binary(a: x_v, b: x_v) -> y_v { return max(a, b); }
$$ elif op == "minimum"
fn binary(a: x_v, b: x_v) -> y_v { return min(a, b); }
$$ elif op == "mul"
fn binary(a: x_v, b: x_v) -> y_v { return a * b; }
$$ elif op == "not_equal"
fn binary(a: x_v, b: x_v) -> y_v { return select(y_v(0), y_v(1), a != b); }
$$ elif op == "pow"
// A negative base has a real power only for a whole exponent: its sign is that of (-1)^b.
fn binary(a: x_v, b: x_v) -> y_v {
    let size = pow(abs(a), b);
    let odd = fract(b * 0.5) != x_v(0.0);
    let whole = floor(b) == b;
    let signed = select(size, -size, odd);
    var nan_bits = vec4<u32>(0x7fc00000u);
    let negative = select(bitcast<vec4<f32>>(nan_bits), signed, whole);
    return select(select(size, negative, a < x_v(0.0)), x_v(1.0), b == x_v(0.0));
}
$$ elif op == "pow_integer"
// Repeated squaring; a negative exponent leaves 1, -1 or 0.
fn binary(a: x_v, b: x_v) -> y_v {
    var result = x_v(1);
    var factor = a;
    var rest = vec4<u32>(max(b, x_v(0)));
    for (var bit = 0u; bit < 32u; bit++) {
        result = select(result, result * factor, (rest & vec4<u32>(1u)) == vec4<u32>(1u));
        factor = factor * factor;
        rest = rest >> vec4<u32>(1u);
    }
    return result;
}
$$ elif op == "prelu"
fn binary(a: x_v, b: x_v) -> y_v { return select(a * b, a, a >= x_v(0)); }
$$ elif op == "squared_difference"
fn binary(a: x_v, b: x_v) -> y_v { return (a - b) * (a - b); }
$$ elif op == "sub"
fn binary(a: x_v, b: x_v) -> y_v { return a - b; }
$$ endif

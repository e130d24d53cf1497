// _power: power(a, b) = a^b of floats or of integers.
//
//   Needs: alias x_v, four of either.

$$ if integer
// Repeated squaring; a negative exponent leaves 1, -1 or 0.
fn power(a: x_v, b: x_v) -> x_v {
    var result = x_v(1);
    var factor = a;
    var rest = vec4<u32>(max(b, x_v(0)));
    for (var bit = 0u; bit < 32u; bit++) {
        result = select(result, result * factor, (rest & vec4<u32>(1u)) == vec4<u32>(1u));
        factor = factor * factor;
        rest = rest >> vec4<u32>(1u);
    }
    let inverse = select(x_v(0), select(a, x_v(1), (b & x_v(1)) == x_v(0)), abs(a) == x_v(1));
    return select(result, inverse, b < x_v(0));
}
$$ else
// A negative base has a real power only for a whole exponent: its sign is that of (-1)^b.
fn power(a: x_v, b: x_v) -> x_v {
    let size = pow(abs(a), b);
    let odd = fract(b * 0.5) != x_v(0.0);
    let whole = floor(b) == b;
    let signed = select(size, -size, odd);
    var nan_bits = vec4<u32>(0x7fc00000u);
    let negative = select(bitcast<vec4<f32>>(nan_bits), signed, whole);
    return select(select(size, negative, a < x_v(0.0)), x_v(1.0), b == x_v(0.0));
}
$$ endif

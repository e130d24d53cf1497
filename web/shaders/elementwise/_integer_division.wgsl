// _integer_division: quotients and rests of integers; every division by zero gives 0.
//
//   quotient(a, b) is cut towards zero; floor_quotient(a, b) and modulo(a, b) are a // b and a % b of Python
//   Needs: alias x_v, four integers.

// Drivers disagree about % of negative numbers and about division by zero: neither is used.
fn divided(a: x_v, b: x_v) -> x_v { return a / select(b, x_v(1), b == x_v(0)); }

fn quotient(a: x_v, b: x_v) -> x_v { return select(divided(a, b), x_v(0), b == x_v(0)); }

fn floor_quotient(a: x_v, b: x_v) -> x_v {
    let q = divided(a, b);
    let below = (q * b != a) & ((a < x_v(0)) != (b < x_v(0)));
    return select(q - select(x_v(0), x_v(1), below), x_v(0), b == x_v(0));
}

fn modulo(a: x_v, b: x_v) -> x_v {
    let r = a - divided(a, b) * b;
    return select(r + select(x_v(0), b, (r != x_v(0)) & ((r < x_v(0)) != (b < x_v(0)))), x_v(0), b == x_v(0));
}

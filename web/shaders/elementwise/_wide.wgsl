// _wide: 64-bit integers as two words, the low one first: what formulas are made of.
//
//   Sums and products wrap around; x / 0 is 0.
//   Needs: alias x_t, a vec2<u32>; `signed` says whether the high word has a sign.

fn negated(a: x_t) -> x_t {
    let low = ~a.x + 1u;
    return x_t(low, ~a.y + select(0u, 1u, low == 0u));
}

fn plus(a: x_t, b: x_t) -> x_t {
    let low = a.x + b.x;
    return x_t(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn minus(a: x_t, b: x_t) -> x_t { return x_t(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x)); }

fn times(a: x_t, b: x_t) -> x_t {
    let low = a.x & 65535u;
    let high = a.x >> 16u;
    let other_low = b.x & 65535u;
    let other_high = b.x >> 16u;
    let one = low * other_high;
    let other = high * other_low;
    let middle = ((low * other_low) >> 16u) + (one & 65535u) + (other & 65535u);
    let upper = high * other_high + (one >> 16u) + (other >> 16u) + (middle >> 16u);
    return x_t(a.x * b.x, upper + a.x * b.y + a.y * b.x);
}

fn below_unsigned(a: x_t, b: x_t) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
$$ if signed
fn below(a: x_t, b: x_t) -> bool {
    return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x < b.x);
}
fn is_negative(a: x_t) -> bool { return a.y >= 0x80000000u; }
$$ else
fn below(a: x_t, b: x_t) -> bool { return below_unsigned(a, b); }
fn is_negative(a: x_t) -> bool { return false; }
$$ endif

fn larger(a: x_t, b: x_t) -> x_t { return select(a, b, below(a, b)); }
fn smaller(a: x_t, b: x_t) -> x_t { return select(a, b, below(b, a)); }
fn size_of(a: x_t) -> x_t { return select(a, negated(a), is_negative(a)); }
fn sign_of(a: x_t) -> x_t { return select(x_t(select(0u, 1u, any(a != x_t())), 0u), x_t(~0u), is_negative(a)); }

// Bit by bit, both without signs.
fn divided(a: x_t, b: x_t) -> x_t {
    var quotient = x_t();
    var rest = x_t();
    for (var bit = 64u; bit > 0u; bit--) {
        let word = (bit - 1u) >> 5u;
        let place = (bit - 1u) & 31u;
        let is_over = rest.y >= 0x80000000u;
        rest = x_t((rest.x << 1u) | ((a[word] >> place) & 1u), (rest.y << 1u) | (rest.x >> 31u));
        if (is_over || !below_unsigned(rest, b)) {
            rest = minus(rest, b);
            quotient[word] |= 1u << place;
        }
    }
    return quotient;
}

fn quotient(a: x_t, b: x_t) -> x_t {
    let q = divided(size_of(a), size_of(b));
    return select(select(q, negated(q), is_negative(a) != is_negative(b)), x_t(), all(b == x_t()));
}

fn floor_quotient(a: x_t, b: x_t) -> x_t {
    let q = quotient(a, b);
    let is_cut = any(times(q, b) != a) && is_negative(a) != is_negative(b) && any(b != x_t());
    return select(q, minus(q, x_t(1u, 0u)), is_cut);
}

fn modulo(a: x_t, b: x_t) -> x_t {
    return select(minus(a, times(floor_quotient(a, b), b)), x_t(), all(b == x_t()));
}

// Repeated squaring; of a negative exponent 1, -1 or 0 is left.
fn power(a: x_t, b: x_t) -> x_t {
    if (is_negative(b)) {
        let is_one = all(size_of(a) == x_t(1u, 0u));
        return select(x_t(), select(times(a, a), a, (b.x & 1u) == 1u), is_one);
    }
    var result = x_t(1u, 0u);
    var factor = a;
    for (var bit = 0u; bit < 64u; bit++) {
        if (((b[bit >> 5u] >> (bit & 31u)) & 1u) == 1u) { result = times(result, factor); }
        factor = times(factor, factor);
    }
    return result;
}

// _wide: 64-bit integers as two words, the low one first: what formulas are made of.
//
//   Sums and products wrap around; x / 0 is 0.
//   Needs: `signed` says whether the high word has a sign.

alias wide = vec2<u32>;
fn wide_of(v: i32) -> wide { return wide(bitcast<u32>(v), select(0u, ~0u, v < 0)); }

fn negated(a: wide) -> wide {
    let low = ~a.x + 1u;
    return wide(low, ~a.y + select(0u, 1u, low == 0u));
}

fn plus(a: wide, b: wide) -> wide {
    let low = a.x + b.x;
    return wide(low, a.y + b.y + select(0u, 1u, low < a.x));
}

fn minus(a: wide, b: wide) -> wide { return wide(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x)); }

fn times(a: wide, b: wide) -> wide {
    let low = a.x & 65535u;
    let high = a.x >> 16u;
    let other_low = b.x & 65535u;
    let other_high = b.x >> 16u;
    let one = low * other_high;
    let other = high * other_low;
    let middle = ((low * other_low) >> 16u) + (one & 65535u) + (other & 65535u);
    let upper = high * other_high + (one >> 16u) + (other >> 16u) + (middle >> 16u);
    return wide(a.x * b.x, upper + a.x * b.y + a.y * b.x);
}

// To the right by 1 to 63 bits; the sign comes after.
fn shifted(a: wide, bits: u32) -> wide {
    let high = bitcast<i32>(a.y);
    if (bits >= 32u) { return wide_of(high >> (bits - 32u)); }
    return wide((a.x >> bits) | (a.y << (32u - bits)), bitcast<u32>(high >> bits));
}

fn below_unsigned(a: wide, b: wide) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
$$ if signed
const SIGNED: bool = true;
fn below(a: wide, b: wide) -> bool {
    return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x < b.x);
}
fn is_negative(a: wide) -> bool { return a.y >= 0x80000000u; }
$$ else
const SIGNED: bool = false;
fn below(a: wide, b: wide) -> bool { return below_unsigned(a, b); }
fn is_negative(a: wide) -> bool { return false; }
$$ endif

fn larger(a: wide, b: wide) -> wide { return select(a, b, below(a, b)); }
fn smaller(a: wide, b: wide) -> wide { return select(a, b, below(b, a)); }
fn size_of(a: wide) -> wide { return select(a, negated(a), is_negative(a)); }
fn sign_of(a: wide) -> wide { return select(wide(select(0u, 1u, any(a != wide())), 0u), wide(~0u), is_negative(a)); }

// Bit by bit, both without signs.
fn divided(a: wide, b: wide) -> wide {
    var quotient = wide();
    var rest = wide();
    for (var bit = 64u; bit > 0u; bit--) {
        let word = (bit - 1u) >> 5u;
        let place = (bit - 1u) & 31u;
        let is_over = rest.y >= 0x80000000u;
        rest = wide((rest.x << 1u) | ((a[word] >> place) & 1u), (rest.y << 1u) | (rest.x >> 31u));
        if (is_over || !below_unsigned(rest, b)) {
            rest = minus(rest, b);
            quotient[word] |= 1u << place;
        }
    }
    return quotient;
}

fn quotient(a: wide, b: wide) -> wide {
    let q = divided(size_of(a), size_of(b));
    return select(select(q, negated(q), is_negative(a) != is_negative(b)), wide(), all(b == wide()));
}

fn floor_quotient(a: wide, b: wide) -> wide {
    let q = quotient(a, b);
    let is_cut = any(times(q, b) != a) && is_negative(a) != is_negative(b) && any(b != wide());
    return select(q, minus(q, wide(1u, 0u)), is_cut);
}

fn modulo(a: wide, b: wide) -> wide {
    return select(minus(a, times(floor_quotient(a, b), b)), wide(), all(b == wide()));
}

// Repeated squaring; of a negative exponent 1, -1 or 0 is left.
fn power(a: wide, b: wide) -> wide {
    if (is_negative(b)) {
        let is_one = all(size_of(a) == wide(1u, 0u));
        return select(wide(), select(times(a, a), a, (b.x & 1u) == 1u), is_one);
    }
    var result = wide(1u, 0u);
    var factor = a;
    for (var bit = 0u; bit < 64u; bit++) {
        if (((b[bit >> 5u] >> (bit & 31u)) & 1u) == 1u) { result = times(result, factor); }
        factor = times(factor, factor);
    }
    return result;
}

// cast_wide: converts 64-bit integers, pairs of words with the low one first, to floats, from floats, or bit for bit.
//
//   x [count] of one type, y [count] of another; four consecutive elements an invocation
//   To floats they are rounded once, ties to even; floats are cut towards zero and saturate, a NaN gives 0.
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_wide.wgsl" $}

$$ if rule == "copy"
fn element(i: u32) -> y_t { return load_x(i); }
$$ elif rule == "from_wide"
// The upper 32 bits that count, the last of them set if any below is: they round as the whole number does.
fn element(i: u32) -> y_t {
    let x = load_x(i);
    let is_negative = is_negative(x);
    let size = size_of(x);
    let zeros = countLeadingZeros(size.y);
    var upper = size.x;
    var unit = 1.0;
    if (size.y != 0u) {
        let rest = select(size.x << zeros, 0u, zeros == 32u);
        upper = (size.y << zeros) | select(size.x >> (32u - zeros), 0u, zeros == 0u) | select(0u, 1u, rest != 0u);
        unit = 4294967296.0 / f32(1u << zeros);
    }
    let below = upper & 255u;
    let is_up = below > 128u || (below == 128u && (upper & 256u) != 0u);
    let rounded = 256.0 * (f32(upper >> 8u) + select(0.0, 1.0, is_up));
    let y = select(f32(upper), rounded, upper >= 0x80000000u) * unit;
    return y_t(select(y, -y, is_negative));
}
$$ else
fn element(i: u32) -> y_t {
    let x = f32(load_x(i));
    let size = trunc(abs(x));
    if (!(size >= 1.0) || (!SIGNED && x < 0.0)) { return vec2<u32>(0u); }
    if (SIGNED && size >= 9223372036854775808.0) {
        return select(vec2<u32>(~0u, 0x7fffffffu), vec2<u32>(0u, 0x80000000u), x < 0.0);
    }
    if (!SIGNED && size >= 18446744073709551616.0) { return vec2<u32>(~0u, ~0u); }
    let high = floor(size / 4294967296.0);
    let words = vec2<u32>(u32(size - high * 4294967296.0), u32(high));
    return select(words, negated(words), x < 0.0);
}
$$ endif

{$ include "_each_element.wgsl" $}

// short_product: convolutions and matrix products of int16 data with int8 weights, whose sums have 64 bits.
//
//   x [N, IH, IW, CI] int16; bias [CO] of 64 bits, of 32 where sums have as many
//   w [CO, KH, KW, CI/groups] int8, read with the steps `w_out` and `w_tap`
//   scales, shifts [CO]: y = (sum * scale + half) >> shift, clamped to low..high
//   y [N, OH, OW, CO] int16, four consecutive elements an invocation
//   Dispatch: (ceil(count / 4) / WG)
//   Rounding: 0 as above; else sums of 32 bits are rounded twice, halves up (1) or away from zero (2), and shifts are
//   exponents of two of scales that stand for fractions
//   Source: tensorflow v2.18.0, lite/kernels/internal/common.cc, MultiplyByQuantizedMultiplier of int64 and of int32

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const CHUNK: u32 = 256u;  // products of 2^15 by 2^7 that 31 bits hold
{$ include "_wide.wgsl" $}

// Where a tap reads along an axis; -1 where it reads nothing.
fn source(at: u32, tap: u32, stride: u32, pad: i32) -> i32 {
    if (params.transposed == 0u) { return i32(at * stride + tap) - pad; }
    let reached = i32(at) + pad - i32(tap);
    return select(-1, reached / i32(stride), reached >= 0 && reached % i32(stride) == 0);
}

// What one tap adds: its products, summed in parts.
fn along(from_x: u32, from_w: u32, length: u32, before: wide) -> wide {
    var sum = before;
    for (var c = 0u; c < length; c += CHUNK) {
        var part = 0;
        let end = min(c + CHUNK, length);
        for (var k = c; k < end; k++) { part += load_x(from_x + k) * load_w(from_w + k); }
        sum = plus(sum, wide_of(part));
    }
    return sum;
}

$$ if rounding
fn scaled_narrow(sum: i32, scale: i32, exponent: i32) -> i32 {
    let left = u32(max(exponent, 0));
    let right = u32(max(-exponent, 0));
    let whole = bitcast<i32>(bitcast<u32>(sum) << left);
    let high = bitcast<i32>(shifted(plus(times(wide_of(whole), wide_of(scale)), wide(1u << 30u, 0u)), 31u).x);
    let half = (1u << right) >> 1u;
    return (high + bitcast<i32>(half) - select(0, 1, params.away != 0 && high < 0 && half > 0u)) >> right;
}
$$ endif

fn element(i: u32) -> y_t {
    let o = i % params.co;
    let ox = i / params.co % params.ow;
    let oy = i / params.co / params.ow % params.oh;
    let image = i / params.co / params.ow / params.oh;
    let in_group = params.ci / params.groups;
    let first = o / (params.co / params.groups) * in_group;
    $$ if biased and rounding
    var sum = wide_of(load_bias(o));
    $$ elif biased
    var sum = load_bias(o);
    $$ else
    var sum = wide();
    $$ endif
    for (var ky = 0u; ky < params.kh; ky++) {
        let iy = source(oy, ky * params.dilation_h, params.stride_h, params.pad_top);
        for (var kx = 0u; kx < params.kw; kx++) {
            let ix = source(ox, kx * params.dilation_w, params.stride_w, params.pad_left);
            if (iy < 0 || iy >= i32(params.ih) || ix < 0 || ix >= i32(params.iw)) { continue; }
            let pixel = (image * params.ih + u32(iy)) * params.iw + u32(ix);
            let tap = ky * params.kw + kx;
            sum = along(pixel * params.ci + first, o * params.w_out + tap * params.w_tap, in_group, sum);
        }
    }
    $$ if rounding
    return clamp(scaled_narrow(i32(sum.x), load_scales(o), load_shifts(o)), params.low, params.high);
    $$ else
    let bits = u32(load_shifts(o));
    let half = select(wide(1u << (bits - 1u), 0u), wide(0u, 1u << (bits - 33u)), bits > 32u);
    let scaled = shifted(plus(times(sum, wide_of(load_scales(o))), half), bits);
    return i32(smaller(larger(scaled, wide_of(params.low)), wide_of(params.high)).x);
    $$ endif
}

{$ include "_each_element.wgsl" $}

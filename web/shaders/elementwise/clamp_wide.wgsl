// clamp_wide: clamps 64-bit integers, compared in both their words.
//
//   x, y [count] pairs of words, the low one first; four consecutive elements an invocation
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

{$ include "_wide.wgsl" $}

fn element(i: u32) -> y_t {
    return smaller(larger(load_x(i), wide(params.low, params.low_high)), wide(params.high, params.high_high));
}

{$ include "_each_element.wgsl" $}

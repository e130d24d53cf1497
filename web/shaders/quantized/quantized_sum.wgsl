// quantized_sum: y = a + b or a - b of stored integers, in fixed point with factors of 21 bits.
//
//   a, b, y   int8 or uint8; shapes broadcast, y's dimensions are merged where both inputs allow
//   Source: ai-edge-litert's default delegate: (p*(a - a_zero) + q*(b - b_zero) + half) >> shift
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const RANK: u32 = {{ rank }}u;

fn element(i: u32) -> y_t {
    var rest = i;
    var at = vec2<u32>(0u);
    for (var back = 0u; back < RANK; back++) {
        let d = RANK - 1u - back;
        let k = rest % size_at(d);
        rest /= size_at(d);
        at += k * vec2<u32>(a_stride_at(d), b_stride_at(d));
    }
    let a = params.a_factor * (load_a(at.x) - params.a_zero);
    let b = params.b_factor * (load_b(at.y) - params.b_zero);
    let v = ((a + b + params.half) >> params.shift) + params.y_zero;
    return clamp(v, params.low, params.high);
}

{$ include "_each_element.wgsl" $}

// quantized_product: y = a * b of stored integers: saturate(round_even((a - a_zero)*(b - b_zero)*scale) + y_zero).
//
//   a, b, y   int8 or uint8; shapes broadcast, y's dimensions are merged where both inputs allow
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
    let product = (load_a(at.x) - params.a_zero) * (load_b(at.y) - params.b_zero);
    return clamp(i32(round(f32(product) * params.scale)) + params.y_zero, params.low, params.high);
}

{$ include "_each_element.wgsl" $}

// quantize: y = saturate(round_even(x * inverse) + zero_point), four consecutive elements an invocation.
//
//   x [count] float, y [count] integer; inverse (1 / scale) and zero_points [channels],
//   channel = (i / inner) % channels; NaN gives the zero point
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

fn element(i: u32) -> y_t {
    let channel = (i / params.inner) % params.channels;
    let zero = f32(load_zero_points(channel));
    let v = round(f32(load_x(i)) * load_inverse(channel));
    return y_t(clamp(select(0.0, v, v == v), params.low - zero, params.high - zero) + zero);
}

{$ include "_each_element.wgsl" $}

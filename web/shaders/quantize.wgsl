// quantize: y = saturate(round_even(x / scale) + zero_point), four consecutive elements an invocation.
//
//   x [count] float, y [count] integer; scales and zero_points [channels], channel = (i / inner) % channels
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

fn element(i: u32) -> y_t {
    let channel = (i / params.inner) % params.channels;
    let v = round(load_x(i) / load_scales(channel)) + f32(load_zero_points(channel));
    return y_t(clamp(v, params.low, params.high));
}

{$ include "_each_element.wgsl" $}

// dequantize: y = (x - zero_point) * scale, four consecutive elements an invocation.
//
//   x [count] integer, y [count] float; scales and zero_points [channels], channel = (i / inner) % channels
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

fn element(i: u32) -> y_t {
    let channel = (i / params.inner) % params.channels;
    return f32(i32(load_x(i)) - load_zero_points(channel)) * load_scales(channel);
}

{$ include "_each_element.wgsl" $}

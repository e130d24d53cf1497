// _keep_nan: keep_nan(x, v) = v, or x where x is a NaN: WGSL's min and max may lose it.
//
//   Needs: alias x_v, four floats.

fn keep_nan(x: x_v, v: x_v) -> x_v {
    return select(v, x, (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u));
}

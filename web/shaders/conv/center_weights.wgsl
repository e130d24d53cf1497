// center_weights: stored integers without their zero points, as i32; runs once at load.
//
//   x [count] integers, zero_points [channels], y [count] int32; channel = (i / inner) % channels
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

fn element(i: u32) -> y_t {
    return i32(load_x(i)) - load_zero_points((i / params.inner) % params.channels);
}

{$ include "_each_element.wgsl" $}

// round_long_rows: each element rounded to the nearest of 256 levels that its row has, whose extremes are known.
//
//   x, y [ROWS, D] float32; low, high [ROWS]: the row's least and greatest element
//   Dispatch: (ceil(ROWS*D / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_levels.wgsl" $}
{$ include "_each_element.wgsl" $}

fn element(i: u32) -> y_t {
    let row = i / params.depth;
    return nearest_level(load_x(i), levels_of(min(load_low(row), 0.0), max(load_high(row), 0.0)));
}

// gather_elements: y[o, p, i] = x[o, positions[o, p, i], i], moved bit for bit.
//
//   x [O, D, I], positions and y [O, P, I]; four consecutive elements of y an invocation
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_inside.wgsl" $}

fn element(at: u32) -> y_t {
    let i = at % params.inner;
    let o = at / (params.inner * params.picks);
    return load_x((o * params.depth + inside(load_positions(at), params.depth)) * params.inner + i);
}

{$ include "_each_element.wgsl" $}

// scatter_elements: y[o, d, i] = the last updates[o, p, i] with positions[o, p, i] == d, else x[o, d, i].
//
//   x, y [O, D, I], positions and updates [O, P, I], moved bit for bit
//   Each element of y looks for its update, so no two invocations write one place and the last one wins.
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_inside.wgsl" $}

fn element(at: u32) -> y_t {
    let i = at % params.inner;
    let d = (at / params.inner) % params.depth;
    let o = at / (params.inner * params.depth);
    for (var back = 0u; back < params.picks; back++) {
        let source = (o * params.picks + params.picks - 1u - back) * params.inner + i;
        if (inside(load_positions(source), params.depth) == d) { return load_updates(source); }
    }
    return load_x(at);
}

{$ include "_each_element.wgsl" $}

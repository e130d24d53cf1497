// gather: y[b, o, p, i] = x[b, o, positions[b, p], i], moved bit for bit.
//
//   x [B, O, D, I], positions [B, P], y [B, O, P, I]; four consecutive elements of y an invocation
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_inside.wgsl" $}

fn element(at: u32) -> y_t {
    let i = at % params.inner;
    let p = (at / params.inner) % params.picks;
    let o = (at / (params.inner * params.picks)) % params.outer;
    let b = at / (params.inner * params.picks * params.outer);
    let d = inside(load_positions(b * params.picks + p), params.depth);
    return load_x(((b * params.outer + o) * params.depth + d) * params.inner + i);
}

{$ include "_each_element.wgsl" $}

// gather_nd: y[b, p, i] = x[b, positions[b, p, 0], .., positions[b, p, DEPTH-1], i], moved bit for bit.
//
//   x [B, D1..Dk, I], positions [B, P, k], y [B, P, I]; four consecutive elements of y an invocation
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const DEPTH: u32 = {{ depth }}u;
{$ include "_inside.wgsl" $}

fn element(at: u32) -> y_t {
    let row = at / params.inner;
    var place = row / params.picks;
    for (var d = 0u; d < DEPTH; d++) {
        place = place * size_at(d) + inside(load_positions(row * DEPTH + d), size_at(d));
    }
    return load_x(place * params.inner + at % params.inner);
}

{$ include "_each_element.wgsl" $}

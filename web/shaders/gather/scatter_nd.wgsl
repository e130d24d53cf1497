// scatter_nd: y = x with rows replaced by (or added to) the updates at their positions.
//
//   x, y [D1..Dk, I], positions [P, k], updates [P, I]
//   Each element of y looks for its updates, so no two invocations write one place and the last one wins.
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const DEPTH: u32 = {{ depth }}u;
{$ include "_inside.wgsl" $}

fn place(p: u32) -> u32 {
    var at = 0u;
    for (var d = 0u; d < DEPTH; d++) {
        at = at * size_at(d) + inside(load_positions(p * DEPTH + d), size_at(d));
    }
    return at;
}

fn element(at: u32) -> y_t {
    let row = at / params.inner;
    let i = at % params.inner;
    var v = load_x(at);
    for (var p = 0u; p < params.picks; p++) {
        if (place(p) == row) {
            $$ if add
            v += load_updates(p * params.inner + i);
            $$ else
            v = load_updates(p * params.inner + i);
            $$ endif
        }
    }
    return v;
}

{$ include "_each_element.wgsl" $}

// one_hot: y[o, d, i] = x[o, i] == d ? on : off.
//
//   x [O, I] integers, y [O, D, I] as bits; four consecutive elements of y an invocation
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

fn element(at: u32) -> y_t {
    let i = at % params.inner;
    let d = (at / params.inner) % params.depth;
    let o = at / (params.inner * params.depth);
    let hit = i32(load_x(o * params.inner + i)) == i32(d);
    $$ if wide
    return select(vec2<u32>(params.off, params.off_high), vec2<u32>(params.on, params.on_high), hit);
    $$ else
    return select(params.off, params.on, hit);
    $$ endif
}

{$ include "_each_element.wgsl" $}

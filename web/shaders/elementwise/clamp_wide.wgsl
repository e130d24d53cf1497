// clamp_wide: clamps 64-bit integers, compared in both their words.
//
//   x, y [count] pairs of words, the low one first; four consecutive elements an invocation
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

$$ if signed
fn below(a: vec2<u32>, b: vec2<u32>) -> bool {
    return bitcast<i32>(a.y) < bitcast<i32>(b.y) || (a.y == b.y && a.x < b.x);
}
$$ else
fn below(a: vec2<u32>, b: vec2<u32>) -> bool { return a.y < b.y || (a.y == b.y && a.x < b.x); }
$$ endif

fn element(i: u32) -> y_t {
    let v = load_x(i);
    let low = vec2<u32>(params.low, params.low_high);
    let high = vec2<u32>(params.high, params.high_high);
    if (below(v, low)) { return low; }
    if (below(high, v)) { return high; }
    return v;
}

{$ include "_each_element.wgsl" $}

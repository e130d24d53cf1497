// arg_extreme: the position of the first largest (or smallest) element along an axis; a NaN counts as extreme.
//
//   x [O, D, I], y [O, I] integers; four consecutive elements of y an invocation
//   Dispatch: (ceil(O*I / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

fn beats(v: x_t, best: x_t) -> bool {
    $$ if largest
    return v > best;
    $$ else
    return v < best;
    $$ endif
}

$$ if float
fn is_nan(v: x_t) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }
$$ else
fn is_nan(v: x_t) -> bool { return false; }
$$ endif

fn element(i: u32) -> y_t {
    let base = i / params.inner * params.depth * params.inner + i % params.inner;
    var best = load_x(base);
    var at = 0u;
    for (var d = 1u; d < params.depth; d++) {
        let v = load_x(base + d * params.inner);
        if (!is_nan(best) && (is_nan(v) || beats(v, best))) {
            best = v;
            at = d;
        }
    }
    return y_t(at);
}

{$ include "_each_element.wgsl" $}

// elementwise_wide: y = op(x) or op(a, b) of 64-bit integers in both their words.
//
//   x [count], or a and b whose shapes broadcast; y [count], pairs of words or facts; four elements an invocation
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const RANK: u32 = {{ rank }}u;
$$ if binary
alias x_t = a_t;
$$ endif
{$ include "_wide.wgsl" $}
{{ formula }}

$$ if binary
fn element(i: u32) -> y_t {
    var rest = i;
    var at = vec2<u32>(0u);
    for (var back = 0u; back < RANK; back++) {
        let d = RANK - 1u - back;
        let k = rest % size_at(d);
        rest /= size_at(d);
        at += k * vec2<u32>(a_stride_at(d), b_stride_at(d));
    }
    return binary(load_a(at.x), load_b(at.y));
}
$$ else
fn element(i: u32) -> y_t { return unary(load_x(i)); }
$$ endif

{$ include "_each_element.wgsl" $}

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
{$ include "_places.wgsl" $}
fn element(i: u32) -> y_t {
    let at = places(i);
    return binary(load_a(at.x), load_b(at.y));
}
$$ else
fn element(i: u32) -> y_t { return unary(load_x(i)); }
$$ endif

{$ include "_each_element.wgsl" $}

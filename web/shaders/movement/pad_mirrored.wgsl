// pad_mirrored: padding that repeats x: its edge, or its inside mirrored without or with the edge.
//
//   x, y   any shape of at most 8 dimensions, moved bit for bit; four consecutive elements of y an invocation
//   reflect: -1 -> 1;  symmetric: -1 -> 0;  edge: -1 -> 0, -2 -> 0
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const RANK: u32 = {{ rank }}u;

$$ if mode == "edge"
fn inside(i: i32, size: i32) -> i32 { return clamp(i, 0, size - 1); }
$$ elif mode == "reflect"
fn inside(i: i32, size: i32) -> i32 { return (size - 1) - abs((size - 1) - abs(i)); }
$$ else
fn inside(i: i32, size: i32) -> i32 {
    let low = select(i, -1 - i, i < 0);
    return select(low, 2 * size - 1 - low, low >= size);
}
$$ endif

fn element(i: u32) -> y_t {
    var rest = i;
    var at = 0u;
    for (var back = 0u; back < RANK; back++) {
        let d = RANK - 1u - back;
        let k = i32(rest % size_at(d)) - before_at(d);
        rest /= size_at(d);
        at += u32(inside(k, i32(x_size_at(d)))) * x_stride_at(d);
    }
    return load_x(at);
}

{$ include "_each_element.wgsl" $}

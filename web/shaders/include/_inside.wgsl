// _inside: inside(p, size): a position as an index of an axis with `size` elements.
//
//   Signed positions count from the end where negative; what lies outside goes to the nearest element.

$$ if positions == "signed"
fn inside(p: i32, size: u32) -> u32 {
    return u32(clamp(select(p, p + i32(size), p < 0), 0, i32(size) - 1));
}
$$ else
fn inside(p: u32, size: u32) -> u32 { return min(p, size - 1u); }
$$ endif

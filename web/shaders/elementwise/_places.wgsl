// _places: places(i) = where element i of y lies in a (x) and in b (y), whose shapes broadcast.
fn places(i: u32) -> vec2<u32> {
    var rest = i;
    var at = vec2<u32>(0u);
    for (var back = 0u; back < RANK; back++) {
        let d = RANK - 1u - back;
        let k = rest % size_at(d);
        rest /= size_at(d);
        at += k * vec2<u32>(a_stride_at(d), b_stride_at(d));
    }
    return at;
}

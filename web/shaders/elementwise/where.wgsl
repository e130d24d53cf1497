// where: y = c != 0 ? a : b, four consecutive elements of y an invocation.
//
//   c, a, b, y   shapes broadcast; y's dimensions are merged where all inputs allow; a and b move bit for bit
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const RANK: u32 = {{ rank }}u;

fn element(i: u32) -> y_t {
    var rest = i;
    var at = vec3<u32>(0u);
    for (var back = 0u; back < RANK; back++) {
        let d = RANK - 1u - back;
        let k = rest % size_at(d);
        rest /= size_at(d);
        at += k * vec3<u32>(c_stride_at(d), a_stride_at(d), b_stride_at(d));
    }
    if (load_c(at.x) != 0) { return load_a(at.y); }
    return load_b(at.z);
}

{$ include "_each_element.wgsl" $}

// short_softmax: softmax of rows of int16 in integers, exponentials and a reciprocal from tables of straight lines.
//
//   x, y [ROWS, D], y of 32 bits, 32768 stands for 1; exponentials, reciprocals [513] int32: ends of the lines
//   Dispatch: (ROWS / WG)
//   Source: tensorflow v2.18.0, lite/kernels/internal/reference/softmax.h, SoftmaxInt16

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_wide.wgsl" $}

fn line_of(value: i32) -> u32 { return u32(256 + (value >> 7u)); }
fn on_line(start: i32, end: i32, value: i32) -> i32 {
    return start + (((end - start) * (value & 127) + 64) >> 7u);
}

fn exponential(value: i32) -> i32 {
    let line = line_of(value);
    return on_line(load_exponentials(line), load_exponentials(line + 1u), value);
}

fn reciprocal(value: i32) -> i32 {
    let line = line_of(value);
    return on_line(load_reciprocals(line), load_reciprocals(line + 1u), value);
}

// distance * factor * 2^(shift - 31), rounded twice: ties away from zero.
fn scaled(distance: i32) -> i32 {
    let left = u32(max(params.shift, 0));
    let power = select(wide(1u << left, 0u), wide(0u, 1u << (left - 32u)), left > 31u);
    let product = times(times(wide_of(distance), power), wide_of(params.factor));
    let nudged = plus(product, wide_of(select(1 << 30u, 1 - (1 << 30u), is_negative(product))));
    let size = shifted(size_of(nudged), 31u);
    let high = larger(select(size, negated(size), is_negative(nudged)), wide_of(-2147483647 - 1));
    let value = i32(high.x);
    if (params.shift >= 0) { return value; }
    let right = u32(-params.shift);
    let mask = i32((1u << right) - 1u);
    return (value >> right) + select(0, 1, (value & mask) > (mask >> 1u) + select(0, 1, value < 0));
}

fn weight(x: i32, top: i32) -> i32 { return exponential(clamp(scaled(x - top), -65535, 0) + 32767); }

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let row = gid.x + gid.y * groups.x * WG;
    if (row >= params.rows) { return; }
    let base = row * params.depth;
    var top = -32768;
    for (var k = 0u; k < params.depth; k++) { top = max(top, load_x(base + k)); }
    var sum = 0u;
    for (var k = 0u; k < params.depth; k++) { sum += u32(weight(load_x(base + k), top)); }
    let headroom = countLeadingZeros(sum);
    let rest = i32(((sum << (headroom - 1u)) + 8192u) >> 14u) - 32768 - 65536;
    let inverse = reciprocal(clamp(rest, -32768, 32767));
    let last = 31u - headroom;
    for (var k = 0u; k < params.depth; k++) {
        store_y(base + k, clamp((weight(load_x(base + k), top) * inverse + (1 << (last - 1u))) >> last, 0, 32767));
    }
}

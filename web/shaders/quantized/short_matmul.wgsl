// short_matmul: products of matrices of int16, either of them perhaps transposed, whose sums have 64 bits.
//
//   x element (m, k) at m * x_row + k * x_step, w element (k, n) at n * w_column + k * w_step, int16; batches broadcast
//   y [..., M, N] int16, four consecutive elements an invocation: (sum * scale + half) >> shift, clamped to low..high
//   Dispatch: (ceil(count / 4) / WG)
//   Source: tensorflow v2.18.0, lite/kernels/internal/reference/batch_matmul.h and common.cc

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const RANK: u32 = {{ rank }}u;
{$ include "_wide.wgsl" $}

fn element(i: u32) -> y_t {
    let n = i % params.n;
    let m = (i / params.n) % params.m;
    var rest = i / (params.n * params.m);
    var at = vec2<u32>(m * params.x_row, n * params.w_column);
    for (var back = 0u; back < RANK; back++) {
        let d = RANK - 1u - back;
        at += rest % size_at(d) * vec2<u32>(x_batch_at(d), w_batch_at(d));
        rest /= size_at(d);
    }
    var sum = wide();
    for (var k = 0u; k < params.k; k++) {
        sum = plus(sum, wide_of(load_x(at.x + k * params.x_step) * load_w(at.y + k * params.w_step)));
    }
    let bits = params.shift;
    let half = select(wide(1u << (bits - 1u), 0u), wide(0u, 1u << (bits - 33u)), bits > 32u);
    let scaled = shifted(plus(times(sum, wide_of(params.scale)), half), bits);
    return i32(smaller(larger(scaled, wide_of(params.low)), wide_of(params.high)).x);
}

{$ include "_each_element.wgsl" $}

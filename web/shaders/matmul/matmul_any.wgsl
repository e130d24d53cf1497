// matmul_any: y[b, m, n] = sum over k of x[b, m, k] * b[b, k, n], any strides, batches broadcast.
//
//   x, b, y   batches of matrices; four consecutive elements of y an invocation
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const RANK: u32 = {{ rank }}u;
{$ include "_epilogue_one.wgsl" $}

$$ if quantized
fn right(i: u32) -> b_t { return load_b(i) - params.b_zero; }
$$ else
fn right(i: u32) -> b_t { return load_b(i); }
$$ endif

fn element(i: u32) -> y_t {
    let n = i % params.n;
    let m = (i / params.n) % params.m;
    var rest = i / (params.n * params.m);
    var at = vec2<u32>(m * params.a_row, n * params.b_column);
    for (var back = 0u; back < RANK; back++) {
        let d = RANK - 1u - back;
        at += rest % size_at(d) * vec2<u32>(a_batch_at(d), b_batch_at(d));
        rest /= size_at(d);
    }
    var sum = b_t();
    for (var k = 0u; k < params.k; k++) {
        sum += input1(at.x + k * params.a_step) * right(at.y + k * params.b_step);
    }
    return finish_one(sum, i / params.n, n);
}

{$ include "_each_element.wgsl" $}

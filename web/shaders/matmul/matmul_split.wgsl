// matmul_split: as matmul_any, for few results of long sums: eight invocations share a sum and meet in workgroup memory.
//
//   x, b, y   batches of matrices; rows of y in whole quads
//   COLUMNS: neighbouring columns of b lie side by side and are read as quads
//   A workgroup computes eight quads of y: invocation = (quad, slice of the sum).
//   Dispatch: (ceil(count / 4) / 8) workgroups

{{ prelude }}
const WG: u32 = 64u;
const SLICES: u32 = 8u;
const RANK: u32 = {{ rank }}u;
{$ include "_epilogue.wgsl" $}
{$ include "_each_workgroup.wgsl" $}

var<workgroup> partial: array<vec4<f32>, WG>;

fn units() -> u32 { return (params.count / 4u + 7u) / 8u; }

fn right(at: u32) -> vec4<f32> {
    $$ if columns
    return load4_b(at / 4u);
    $$ else
    return vec4<f32>(
        load_b(at), load_b(at + params.b_column), load_b(at + 2u * params.b_column), load_b(at + 3u * params.b_column),
    );
    $$ endif
}

fn compute(unit: u32, local: u32) {
    // What lies outside repeats the last quad: no barrier may stand behind a return.
    let slice = local % SLICES;
    let wanted = unit * (WG / SLICES) + local / SLICES;
    let i = 4u * min(wanted, params.count / 4u - 1u);
    let n = i % params.n;
    var rest = i / (params.n * params.m);
    var at = vec2<u32>((i / params.n) % params.m * params.a_row, n * params.b_column);
    for (var back = 0u; back < RANK; back++) {
        let d = RANK - 1u - back;
        at += rest % size_at(d) * vec2<u32>(a_batch_at(d), b_batch_at(d));
        rest /= size_at(d);
    }
    var sum = vec4<f32>();
    for (var k = slice; k < params.k; k += SLICES) {
        sum += input1(at.x + k * params.a_step) * right(at.y + k * params.b_step);
    }
    partial[local] = sum;
    workgroupBarrier();
    if (slice > 0u || 4u * wanted >= params.count) { return; }
    for (var s = 1u; s < SLICES; s++) { sum += partial[local + s]; }
    store4_y(wanted, finish(sum, i / params.n, n / 4u));
}

// conv2d_1x1_matrices: a matrix product of float16 by the device's own products of 16x16 matrices, summed up in float32.
//
//   x  [rows, CI] float16, as words of two, or float32, rounded to float16 on the way
//   w  [CI, 4*ceil(CO/4)] float16, as words of two, zeros behind CO
//   y  [rows, CO]                                    written in quads, or one by one if CO % 4 != 0
//   Needs: CI % 4 == 0, subgroups of 32 and the matrices that features.MATRICES stands for.
//   A workgroup computes ROWS by COLUMNS, each of its subgroups `down` by `across` matrices. Both operands pass workgroup
//   memory in slices of DEPTH of the sum, the next slice on its way while one is multiplied; neighbours fetch and store
//   neighbouring words. At the end each subgroup finishes its matrices one by one.
//   With SPLIT > 1 workgroups share sums as well: y [SPLIT, rows, 4*ceil(CO/4)] has the parts, for product_parts.
//   Dispatch: (ceil(rows / ROWS) * ceil(CO / COLUMNS) * SPLIT) workgroups

{{ prelude }}
alias w_v = vec4<f32>;
const WG: u32 = {{ 32 * high * wide }}u;
const ROWS: u32 = {{ 16 * down * high }}u;
const COLUMNS: u32 = {{ 16 * across * wide }}u;
const DEPTH: u32 = {{ depth }}u;
const SPLIT: u32 = {{ split }}u;
const WIDE: u32 = {{ wide }}u; // subgroups side by side
const DOWN: u32 = {{ 16 * down }}u; // rows and columns of a subgroup
const ACROSS: u32 = {{ 16 * across }}u;
// Elements from one row of a slice to the next: eight more than there are keep rows apart in memory banks.
const X_ROW: u32 = DEPTH + 8u;
const W_ROW: u32 = COLUMNS + 8u;
$$ set wg = 32 * high * wide
$$ set x_loads = 16 * down * high * depth // 2 // wg
$$ set w_loads = 16 * across * wide * depth // 2 // wg
{$ include "_epilogue.wgsl" $}
$$ if split == 1
{$ include "_put.wgsl" $}
$$ endif

var<workgroup> x_slice: array<f16, ROWS * X_ROW>;
var<workgroup> w_slice: array<f16, DEPTH * W_ROW>;
var<workgroup> finished: array<f32, {{ 256 * high * wide }}>; // a matrix of each subgroup

// Elements k and k + 1 of a row, rounded; zeros behind the end of a part of the sum.
fn x_pair(row: u32, k: u32, end: u32) -> u32 {
    let at = min(row, params.pixels - 1u) * params.sum + min(k, params.sum - 2u);
    $$ if narrow
    return select(0u, load_x(at / 2u), k < end);
    $$ else
    return select(0u, pack2x16float(vec2<f32>(load_x(at), load_x(at + 1u))), k < end);
    $$ endif
}
fn w_pair(k: u32, column: u32, end: u32) -> u32 {
    let word = load_weights((min(k, params.sum - 1u) * 4u * params.co4 + min(column, 4u * params.co4 - 2u)) / 2u);
    return select(0u, word, k < end);
}

$$ macro fetch(first)
        $$ for i in range(x_loads)
        x{{ i }} = x_pair(first_row + (local + {{ wg * i }}u) / (DEPTH / 2u), {{ first }} + (local + {{ wg * i }}u) % (DEPTH / 2u) * 2u, end);
        $$ endfor
        $$ for i in range(w_loads)
        w{{ i }} = w_pair({{ first }} + (local + {{ wg * i }}u) / (COLUMNS / 2u), first_column + (local + {{ wg * i }}u) % (COLUMNS / 2u) * 2u, end);
        $$ endfor
$$ endmacro
@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
    @builtin(subgroup_id) subgroup: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let blocks = (params.co + COLUMNS - 1u) / COLUMNS;
    let unit = group.x + group.y * groups.x; // behind the last one nothing is stored
    let share = unit % SPLIT;
    let tile = unit / SPLIT;
    let first_row = tile / blocks * ROWS;
    let first_column = tile % blocks * COLUMNS;
    let part = (params.sum + DEPTH * SPLIT - 1u) / (DEPTH * SPLIT) * DEPTH;
    let begin_k = share * part;
    let end = min(begin_k + part, params.sum);
    let row = subgroup / WIDE * DOWN;
    let column = subgroup % WIDE * ACROSS;
    $$ for i in range(down)
    $$ for j in range(across)
    var sum{{ i }}_{{ j }}: subgroup_matrix_result<f32, 16, 16>;
    $$ endfor
    $$ endfor
    $$ for i in range(x_loads)
    var x{{ i }} = 0u;
    $$ endfor
    $$ for i in range(w_loads)
    var w{{ i }} = 0u;
    $$ endfor
{{ fetch("begin_k") }}
    for (var k = begin_k; k < end; k += DEPTH) {
        workgroupBarrier();
        $$ for i in range(x_loads)
        {
            let v = bitcast<vec2<f16>>(x{{ i }});
            let at = (local + {{ wg * i }}u) / (DEPTH / 2u) * X_ROW + (local + {{ wg * i }}u) % (DEPTH / 2u) * 2u;
            x_slice[at] = v.x;
            x_slice[at + 1u] = v.y;
        }
        $$ endfor
        $$ for i in range(w_loads)
        {
            let v = bitcast<vec2<f16>>(w{{ i }});
            let at = (local + {{ wg * i }}u) / (COLUMNS / 2u) * W_ROW + (local + {{ wg * i }}u) % (COLUMNS / 2u) * 2u;
            w_slice[at] = v.x;
            w_slice[at + 1u] = v.y;
        }
        $$ endfor
        workgroupBarrier();
{{ fetch("(k + DEPTH)") }}
        $$ for d in range(depth // 16)
        {
            $$ for i in range(down)
            let l{{ i }} = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>>(
                &x_slice, (row + {{ 16 * i }}u) * X_ROW + {{ 16 * d }}u, false, X_ROW,
            );
            $$ endfor
            $$ for j in range(across)
            let r{{ j }} = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>>(
                &w_slice, {{ 16 * d }}u * W_ROW + column + {{ 16 * j }}u, false, W_ROW,
            );
            $$ endfor
            $$ for i in range(down)
            $$ for j in range(across)
            sum{{ i }}_{{ j }} = subgroupMatrixMultiplyAccumulate(l{{ i }}, r{{ j }}, sum{{ i }}_{{ j }});
            $$ endfor
            $$ endfor
        }
        $$ endfor
    }
    let begin = subgroup * 256u;
    $$ for i in range(down)
    $$ for j in range(across)
    workgroupBarrier();
    subgroupMatrixStore(&finished, begin, sum{{ i }}_{{ j }}, false, 16u);
    workgroupBarrier();
    $$ for q in range(2)
    {
        let at = begin + 4u * lane + {{ 128 * q }}u;
        let sum = vec4<f32>(finished[at], finished[at + 1u], finished[at + 2u], finished[at + 3u]);
        let pixel = first_row + row + {{ 16 * i + 8 * q }}u + lane / 4u;
        let c4 = (first_column + column + {{ 16 * j }}u) / 4u + lane % 4u;
        $$ if split > 1
        if (pixel < params.pixels && c4 < params.co4) { store4_y((share * params.pixels + pixel) * params.co4 + c4, sum); }
        $$ else
        put(pixel, c4, sum);
        $$ endif
    }
    $$ endfor
    $$ endfor
    $$ endfor
}

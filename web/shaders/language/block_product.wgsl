// block_product: y = x wT + bias + residual of many rows x and weights that stay in a file's blocks; bound by arithmetic.
//
//   x         [ROWS, K], read in quads; rounded before (rounded_blocks.wgsl) unless weights are floats
//   w         bytes [N, row] in blocks (_blocks.wgsl), as words
//   gated     y = silu(x wT) * (x w1T)
//   otherwise of several matrices the results lie side by side: that of w, then w1's from `first1` on, w2's from `first2`
//   place     its second number is how many rows count; y is 0 for others
//   bias [N], residual and y [ROWS, N]
//   Needs: K % 32 == 0.  A workgroup computes ROWS by 32 columns of all matrices. SPLITS groups of 64 invocations each
//   take every SPLITS-th block of 32 of a sum: they fetch it of ROWS rows of x and open it of 32 rows of w while they add
//   the block before to ROWS / 8 by four sums each; at the end the groups' sums are added. Eight neighbours fetch a row's
//   block together. In workgroup memory quads of one k lie together, exchanged by the number of k (`^`), so that neighbours
//   store into other banks.
//   Dispatch: (ceil(rows / ROWS) * ceil(N / 32)) workgroups, or ceil(N / 16) if gated

{{ prelude }}
const SPLITS: u32 = {{ splits }}u;
const LANES: u32 = 64u;
const WG: u32 = SPLITS * LANES;
const ROWS: u32 = {{ 8 * per_rows }}u;
const COLUMNS: u32 = {{ 16 if gated else 32 }}u; // of y

var<workgroup> rows: array<vec4<f32>, {{ splits * 64 * per_rows }}>; // [split, quad of k, row]; then sums
var<workgroup> columns: array<vec4<f32>, {{ splits * 256 }}>; // [split, quad of k, k, quad of columns]
{$ include "_each_workgroup.wgsl" $}
{$ include "_blocks.wgsl" $}
{$ include "_matrices.wgsl" $}
{$ include "_added.wgsl" $}

fn across() -> u32 { return (params.n + COLUMNS - 1u) / COLUMNS; }
fn units() -> u32 { return (params.rows + ROWS - 1u) / ROWS * across(); }

fn counted() -> u32 {
    $$ if has_place
    return u32(clamp(load_place(1u), 0, i32(params.rows)));
    $$ else
    return params.rows;
    $$ endif
}

// Weights 4j to 4j + 3 of block `at`, of column c of the tile whose first column of y is n.
fn opened(n: u32, c: u32, at: u32, j: u32) -> vec4<f32> {
    $$ if gated
    return weight_quad(min(n + c % COLUMNS, params.n - 1u) * params.row_bytes, at, j, c / COLUMNS);
    $$ else
    let column = min(n + c, params.n - 1u);
    let side = side_of(column);
    return weight_quad((column - first_of(side)) * params.row_bytes, at, j, side);
    $$ endif
}

fn total(i: u32, lane: u32) -> vec4<f32> {
    var sum = vec4<f32>();
    $$ for s in range(splits)
    sum += rows[{{ 64 * s * per_rows }}u + i * LANES + lane];
    $$ endfor
    return sum;
}

$$ macro fetch(at, some)
        $$ for i in range(per_rows)
        x{{ i }} = select(vec4<f32>(), load4_x(at_row{{ i }} + 8u * {{ at }}), {{ some }});
        $$ endfor
        $$ for c in range(4)
        w{{ c }} = opened(column, 4u * high + {{ c }}u, {{ at }}, low);
        $$ endfor
$$ endmacro
fn compute(unit: u32, local: u32) {
    let first = unit / across() * ROWS;
    let column = unit % across() * COLUMNS;
    let split = local / LANES;
    let lane = local % LANES;
    let high = lane / 8u;
    let low = lane % 8u;
    let begin_x = split * 8u * ROWS;
    let begin_w = split * 256u;
    $$ for i in range(per_rows)
    var sum{{ i }} = vec4<f32>();
    $$ endfor
    if (first < counted()) {
        $$ for i in range(per_rows)
        let at_row{{ i }} = min(first + high + {{ 8 * i }}u, counted() - 1u) * params.k / 4u + low;
        var x{{ i }} = vec4<f32>();
        $$ endfor
        $$ for c in range(4)
        var w{{ c }} = vec4<f32>();
        $$ endfor
        let blocks = params.k / 32u;
{{ fetch("min(split, blocks - 1u)", "split < blocks") }}
        for (var step = 0u; step < blocks; step += SPLITS) {
            workgroupBarrier();
            $$ for i in range(per_rows)
            rows[begin_x + low * ROWS + {{ 8 * i }}u + (high ^ low)] = x{{ i }};
            $$ endfor
            $$ for c in range(4)
            columns[begin_w + low * 32u + {{ 8 * c }}u + (high ^ low)] = vec4<f32>(w0[{{ c }}], w1[{{ c }}], w2[{{ c }}], w3[{{ c }}]);
            $$ endfor
            workgroupBarrier();
            // Behind the last block a split adds zeros.
            let next = step + SPLITS + split;
{{ fetch("min(next, blocks - 1u)", "next < blocks") }}
            $$ for j in range(8)
            {
                $$ for i in range(per_rows)
                let r{{ i }} = rows[begin_x + {{ j * 8 * per_rows + 8 * i }}u + (high ^ {{ j }}u)];
                $$ endfor
                $$ for c in range(4)
                let c{{ c }} = columns[begin_w + {{ 32 * j + 8 * c }}u + (low ^ {{ j }}u)];
                $$ endfor
                $$ for c in range(4)
                $$ for i in range(per_rows)
                sum{{ i }} += r{{ i }}[{{ c }}] * c{{ c }};
                $$ endfor
                $$ endfor
            }
            $$ endfor
        }
        workgroupBarrier();
    }
    $$ for i in range(per_rows)
    rows[split * {{ per_rows }}u * LANES + {{ i }}u * LANES + lane] = sum{{ i }};
    $$ endfor
    workgroupBarrier();
    $$ if gated
    if (low >= 4u) { return; }
    $$ endif
    $$ for i in range(per_rows // splits)
    {
        let i = split * {{ per_rows // splits }}u + {{ i }}u;
        let r = first + high + 8u * i;
        let sums = total(i, lane);
        $$ if gated
        let ups = total(i, lane + 4u);
        $$ endif
        if (r < params.rows) {
            $$ for c in range(4)
            {
                let n = column + 4u * low + {{ c }}u;
                $$ if gated
                let v = gated(sums[{{ c }}], ups[{{ c }}]);
                $$ else
                let v = sums[{{ c }}] + added(r, min(n, params.n - 1u));
                $$ endif
                if (n < params.n) { store_y(r * params.n + n, select(0.0, v, r < counted())); }
            }
            $$ endfor
        }
    }
    $$ endfor
}

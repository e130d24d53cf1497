// block_product: y = x wT + bias + residual of many rows x and weights that stay in a file's blocks; bound by arithmetic.
//
//   x         [ROWS, K], read in quads; unless weights are floats, each 32 of it become whole numbers times a scale
//   w         bytes [N, row] in blocks (_blocks.wgsl), as words
//   place     its second number is how many rows count; y is 0 for others
//   bias [N], residual and y [ROWS, N]
//   Needs: K % 32 == 0.  A workgroup computes 32 rows by 32 columns. One half of it takes the even blocks of 32 of a sum,
//   the other half the odd ones: 32 invocations fetch a block of each row of x, 32 open one of each row of w, then each
//   adds to its four by four sums; at the end the halves' sums are added.
//   Dispatch: (ceil(ROWS / 32) * ceil(N / 32)) workgroups

{{ prelude }}
const WG: u32 = 128u;
const HALF: u32 = 64u;
const TILE: u32 = 32u;

var<workgroup> rows: array<vec4<f32>, 512>;    // [half, quad, row]
var<workgroup> columns: array<vec4<f32>, 512>; // [half, quad, column]
{$ include "_each_workgroup.wgsl" $}
{$ include "_blocks.wgsl" $}
{$ include "_row_block.wgsl" $}
{$ include "_added.wgsl" $}

fn across() -> u32 { return (params.n + TILE - 1u) / TILE; }
fn units() -> u32 { return (params.rows + TILE - 1u) / TILE * across(); }

fn counted() -> u32 {
    $$ if has_place
    return u32(clamp(load_place(1u), 0, i32(params.rows)));
    $$ else
    return params.rows;
    $$ endif
}

fn fetch_row(row: u32, at: u32, place: u32) {
    var x = row_block(row, at, 1.0);
    $$ for j in range(8)
    rows[place + {{ j }}u * TILE] = x.v[{{ j }}] * x.step;
    $$ endfor
}

fn open_column(row: u32, at: u32, place: u32) {
    $$ if floats
    $$ for j in range(8)
    columns[place + {{ j }}u * TILE] = float_quad(row, at, {{ j }}u, 0u);
    $$ endfor
    $$ else
    var b = open_block(row, at, 0u);
    $$ for j in range(8)
    columns[place + {{ j }}u * TILE] = unpacked(b.q[{{ j }}]) * b.d[{{ j // 4 }}] + b.m[{{ j // 4 }}];
    $$ endfor
    $$ endif
}

fn put(row: u32, n: u32, sum: f32) {
    if (row >= params.rows || n >= params.n) { return; }
    store_y(row * params.n + n, select(0.0, sum + added(row, n), row < counted()));
}

fn compute(unit: u32, local: u32) {
    let first = unit / across() * TILE;
    let column = unit % across() * TILE;
    let side = local / HALF;
    let lane = local % HALF;
    let x = lane / 8u;
    let y = lane % 8u;
    let begin = side * 8u * TILE;
    $$ for i in range(4)
    var sum{{ i }} = vec4<f32>();
    $$ endfor
    if (first < counted()) {
        let last = counted() - 1u;
        let blocks = params.k / 32u;
        for (var step = 0u; step < blocks; step += 2u) {
            let at = step + side;
            workgroupBarrier();
            if (at < blocks && lane < TILE) { fetch_row(min(first + lane, last), at, begin + lane); }
            if (at < blocks && lane >= TILE) {
                open_column(min(column + lane - TILE, params.n - 1u) * params.row_bytes, at, begin + lane - TILE);
            }
            workgroupBarrier();
            if (at < blocks) {
                $$ for j in range(8)
                $$ for c in range(4)
                let c{{ j }}{{ c }} = columns[begin + {{ j }}u * TILE + y + {{ 8 * c }}u];
                $$ endfor
                $$ for i in range(4)
                let r{{ j }}{{ i }} = rows[begin + {{ j }}u * TILE + x + {{ 8 * i }}u];
                sum{{ i }} += vec4<f32>(
                    dot(r{{ j }}{{ i }}, c{{ j }}0), dot(r{{ j }}{{ i }}, c{{ j }}1),
                    dot(r{{ j }}{{ i }}, c{{ j }}2), dot(r{{ j }}{{ i }}, c{{ j }}3),
                );
                $$ endfor
                $$ endfor
            }
        }
    }
    workgroupBarrier();
    $$ for i in range(4)
    if (side == 1u) { rows[{{ i }}u * HALF + lane] = sum{{ i }}; }
    $$ endfor
    workgroupBarrier();
    if (side == 1u) { return; }
    $$ for i in range(4)
    sum{{ i }} += rows[{{ i }}u * HALF + lane];
    $$ for c in range(4)
    put(first + x + {{ 8 * i }}u, column + y + {{ 8 * c }}u, sum{{ i }}[{{ c }}]);
    $$ endfor
    $$ endfor
}

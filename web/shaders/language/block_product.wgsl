// block_product: y = x wT + bias + residual of many rows x and weights that stay in a file's blocks; bound by arithmetic.
//
//   x         [ROWS, K], read in quads; unless weights are floats, each 32 of it become whole numbers times a scale
//   w         bytes [N, row] in blocks (_blocks.wgsl), as words
//   place     its second number is how many rows count; y is 0 for others
//   bias [N], residual and y [ROWS, N]
//   Needs: K % 32 == 0.  A workgroup computes 32 rows by 32 columns: half of it fetches a block of 32 of each row of x,
//   the other half opens one of each row of w, then each invocation adds to its four by four sums.
//   Dispatch: (ceil(ROWS / 32) * ceil(N / 32)) workgroups

{{ prelude }}
const WG: u32 = 64u;
const TILE: u32 = 32u;

var<workgroup> rows: array<vec4<f32>, 256>;    // [quad, row]
var<workgroup> columns: array<vec4<f32>, 256>; // [quad, column]
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

fn fetch_row(row: u32, at: u32, local: u32) {
    var x = row_block(row, at, 1.0);
    for (var j = 0u; j < 8u; j++) { rows[j * TILE + local] = x.v[j] * x.step; }
}

fn open_column(row: u32, at: u32, local: u32) {
    $$ if floats
    for (var j = 0u; j < 8u; j++) { columns[j * TILE + local] = float_quad(row, at, j, 0u); }
    $$ else
    var b = open_block(row, at, 0u);
    for (var j = 0u; j < 8u; j++) { columns[j * TILE + local] = unpacked(b.q[j]) * b.d[j / 4u] + b.m[j / 4u]; }
    $$ endif
}

fn put(row: u32, n: u32, sum: f32) {
    if (row >= params.rows || n >= params.n) { return; }
    store_y(row * params.n + n, select(0.0, sum + added(row, n), row < counted()));
}

fn compute(unit: u32, local: u32) {
    let first = unit / across() * TILE;
    let column = unit % across() * TILE;
    let x = local / 8u;
    let y = local % 8u;
    var sums: array<vec4<f32>, 4>;
    if (first < counted()) {
        let last = counted() - 1u;
        for (var at = 0u; at < params.k / 32u; at++) {
            workgroupBarrier();
            if (local < TILE) {
                fetch_row(min(first + local, last), at, local);
            } else {
                open_column(min(column + local - TILE, params.n - 1u) * params.row_bytes, at, local - TILE);
            }
            workgroupBarrier();
            for (var j = 0u; j < 8u; j++) {
                let a = columns[j * TILE + y];
                let b = columns[j * TILE + y + 8u];
                let c = columns[j * TILE + y + 16u];
                let d = columns[j * TILE + y + 24u];
                for (var i = 0u; i < 4u; i++) {
                    let v = rows[j * TILE + x + 8u * i];
                    sums[i] += vec4<f32>(dot(v, a), dot(v, b), dot(v, c), dot(v, d));
                }
            }
        }
    }
    for (var i = 0u; i < 4u; i++) {
        for (var c = 0u; c < 4u; c++) { put(first + x + 8u * i, column + y + 8u * c, sums[i][c]); }
    }
}

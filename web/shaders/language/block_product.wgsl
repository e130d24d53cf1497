// block_product: y = x wT + bias + residual of many rows x and weights that stay in a file's blocks; bound by arithmetic.
//
//   x         [ROWS, K], read in quads; rounded before (rounded_blocks.wgsl) unless weights are floats
//   w         bytes [N, row] in blocks (_blocks.wgsl), as words
//   gated     y = silu(x wT) * (x w1T); w has the upper, w1 the lower half of a tile's columns
//   otherwise of several matrices the results lie side by side: that of w, then w1's from `first1` on, w2's from `first2`;
//   if `apart` in y, y1 and y2, where N % 4 == 0 of each
//   place     its second number is how many rows count; y is 0 for others
//   bias [N], residual and y [ROWS, N]
//   Needs: K % 32 == 0.  A workgroup computes ROWS rows by COLUMNS columns of all matrices, an invocation an eighth of the
//   rows by an eighth of the columns. PARTS groups of 64 invocations each take every PARTS-th slice of DEPTH of the sums,
//   and are added at the end. A slice is fetched while the one before is multiplied, and opened behind that. Slices are
//   stored by k, four rows or columns a quad; quads are exchanged by k (`at`), so that neighbours store into other banks.
//   Dispatch: (ceil(rows / ROWS) * ceil(columns of all matrices / COLUMNS)) workgroups

{{ prelude }}
const DEPTH: u32 = {{ depth }}u;
const PARTS: u32 = {{ parts }}u;
const LANES: u32 = 64u;
const WG: u32 = PARTS * LANES;
const ROWS: u32 = {{ 8 * per_rows }}u;
const COLUMNS: u32 = {{ 32 * wide }}u;
const TURN: u32 = {{ 32 // depth }}u;
const LINES: u32 = ROWS / 4u;
const EACH: u32 = LINES * DEPTH / LANES; // quads of an invocation that a part's slices have room for
const ACROSS: u32 = {{ 16 * wide if gated else 32 * wide }}u; // columns of y

var<workgroup> x_tile: array<array<array<vec4<f32>, {{ 2 * per_rows }}>, DEPTH>, PARTS>;
var<workgroup> w_tile: array<array<array<vec4<f32>, {{ 8 * wide }}>, DEPTH>, PARTS>;
{$ include "_each_workgroup.wgsl" $}
{$ include "_blocks.wgsl" $}
{$ include "_matrices.wgsl" $}
{$ include "_added.wgsl" $}

fn across() -> u32 { return (params.n + ACROSS - 1u) / ACROSS; }
fn units() -> u32 { return (params.rows + ROWS - 1u) / ROWS * across(); }

fn counted() -> u32 {
    $$ if has_place
    return u32(clamp(load_place(1u), 0, i32(params.rows)));
    $$ else
    return params.rows;
    $$ endif
}

// Where line `line` of quad `quad` of a slice lies among the lines.
fn at(line: u32, quad: u32) -> u32 { return line ^ (TURN * quad); }

// Where quad s of an invocation's sums lies while it meets those of other parts.
fn meeting(s: u32, lane: u32) -> vec3<u32> {
    return vec3<u32>(s / EACH, s % EACH * LANES / LINES + lane / LINES, lane % LINES);
}

// Which matrix a column of a tile is of, and the byte at which its weights begin; n is the tile's first column of y.
struct Column { side: u32, row: u32 }
fn column_at(n: u32, c: u32) -> Column {
    $$ if gated
    return Column(c / ACROSS, min(n + c % ACROSS, params.n - 1u) * params.row_bytes);
    $$ else
    let column = min(n + c, params.n - 1u);
    let side = side_of(column);
    return Column(side, (column - first_of(side)) * params.row_bytes);
    $$ endif
}

fn put(r: u32, n: u32, sums: vec4<f32>) {
    if (r >= params.rows || n >= params.n) { return; }
    $$ if quads
    var v = sums;
    for (var c = 0u; c < 4u; c++) { v[c] += added(r, n + c); }
    store_quad(r, n, select(vec4<f32>(), v, r < counted()));
    $$ else
    for (var c = 0u; c < min(4u, params.n - n); c++) {
        store_y(r * params.n + n + c, select(0.0, sums[c] + added(r, n + c), r < counted()));
    }
    $$ endif
}

$$ set lanes_down = 256 // depth
$$ set lines = 2 * per_rows
$$ set x_items = [lines // lanes_down, 1]|max
$$ set w_items = [8 * wide // lanes_down, 1]|max
$$ set sums = per_rows * wide
$$ set at_once = [sums, lines * depth // 64 * parts]|min
$$ macro fetch()
            let k = min(next, slices - 1u) * DEPTH + 4u * quad;
            $$ for b in range(x_items)
            $$ if lines < lanes_down
            if (line < {{ lines }}u) {
            $$ else
            {
            $$ endif
                $$ for i in range(4)
                x{{ b }}_{{ i }} = load4_x((at_row{{ b }}_{{ i }} + k) / 4u);
                $$ endfor
            }
            $$ endfor
            $$ for b in range(w_items)
            $$ if 8 * wide < lanes_down
            if (line < {{ 8 * wide }}u) {
            $$ else
            {
            $$ endif
                $$ for c in range(4)
                w{{ b }}_{{ c }} = fetch_quad(column{{ b }}_{{ c }}.row, k / 32u, k / 4u % 8u, column{{ b }}_{{ c }}.side);
                $$ endfor
            }
            $$ endfor
$$ endmacro
fn compute(unit: u32, local: u32) {
    let first = unit / across() * ROWS;
    let column = unit % across() * ACROSS;
    $$ if parts > 1
    let part = local / LANES;
    $$ else
    const part = 0u;
    $$ endif
    let lane = local % LANES;
    let tx = lane % 8u;
    let ty = lane / 8u;
    // What this invocation carries into workgroup memory: four rows, and four columns, of quad `quad` of a slice.
    let quad = lane % (DEPTH / 4u);
    let line = lane / (DEPTH / 4u);
    $$ for i in range(per_rows)
    $$ for j in range(wide)
    var sum{{ i }}_{{ j }} = vec4<f32>();
    $$ endfor
    $$ endfor
    if (first < counted()) {
        $$ for b in range(x_items)
        let x_line{{ b }} = min(line + {{ b * lanes_down }}u, LINES - 1u);
        $$ for i in range(4)
        let at_row{{ b }}_{{ i }} = min(first + 4u * x_line{{ b }} + {{ i }}u, counted() - 1u) * params.k;
        var x{{ b }}_{{ i }} = vec4<f32>();
        $$ endfor
        $$ endfor
        $$ for b in range(w_items)
        let w_line{{ b }} = min(line + {{ b * lanes_down }}u, COLUMNS / 4u - 1u);
        $$ for c in range(4)
        let column{{ b }}_{{ c }} = column_at(column, 4u * w_line{{ b }} + {{ c }}u);
        var w{{ b }}_{{ c }} = Raw();
        $$ endfor
        $$ endfor
        let slices = params.k / DEPTH;
        {
            let next = part;
{{ fetch() }}
        }
        for (var step = 0u; step < slices; step += PARTS) {
            let slice = step + part;
            workgroupBarrier();
            $$ for b in range(x_items)
            $$ if lines < lanes_down
            if (line < {{ lines }}u) {
            $$ else
            {
            $$ endif
                $$ if ragged
                if (slice >= slices) { // behind the last slice a part adds zeros
                    $$ for i in range(4)
                    x{{ b }}_{{ i }} = vec4<f32>();
                    $$ endfor
                }
                $$ endif
                $$ for c in range(4)
                x_tile[part][4u * quad + {{ c }}u][at(x_line{{ b }}, quad)] =
                    vec4<f32>(x{{ b }}_0[{{ c }}], x{{ b }}_1[{{ c }}], x{{ b }}_2[{{ c }}], x{{ b }}_3[{{ c }}]);
                $$ endfor
            }
            $$ endfor
            $$ for b in range(w_items)
            $$ if 8 * wide < lanes_down
            if (line < {{ 8 * wide }}u) {
            $$ else
            {
            $$ endif
                let k = min(slice, slices - 1u) * DEPTH + 4u * quad;
                $$ for c in range(4)
                let o{{ c }} = opened(w{{ b }}_{{ c }}, column{{ b }}_{{ c }}.row, k / 32u, k / 4u % 8u);
                $$ endfor
                $$ for c in range(4)
                w_tile[part][4u * quad + {{ c }}u][at(w_line{{ b }}, quad)] =
                    vec4<f32>(o0[{{ c }}], o1[{{ c }}], o2[{{ c }}], o3[{{ c }}]);
                $$ endfor
            }
            $$ endfor
            workgroupBarrier();
            {
                let next = slice + PARTS;
{{ fetch() }}
            }
            $$ for u in range(depth)
            {
                $$ for i in range(per_rows // 4)
                let a{{ i }} = x_tile[part][{{ u }}u][at(ty, {{ u // 4 }}u) + {{ 8 * i }}u];
                $$ endfor
                $$ for j in range(wide)
                let b{{ j }} = w_tile[part][{{ u }}u][at(tx, {{ u // 4 }}u) + {{ 8 * j }}u];
                $$ endfor
                $$ for i in range(per_rows)
                $$ for j in range(wide)
                sum{{ i }}_{{ j }} += a{{ i // 4 }}[{{ i % 4 }}] * b{{ j }};
                $$ endfor
                $$ endfor
            }
            $$ endfor
        }
        workgroupBarrier();
    }
    $$ if parts > 1
    // The parts' sums meet in the memory of the slices of x, as many as find room at a time.
    for (var other = 1u; other < PARTS; other++) {
        $$ for begin in range(0, sums, at_once)
        $$ set some = range(begin, [begin + at_once, sums]|min)
        if (part == other) {
            $$ for s in some
            {
                let m = meeting({{ s - begin }}u, lane);
                x_tile[m.x][m.y][m.z] = sum{{ s // wide }}_{{ s % wide }};
            }
            $$ endfor
        }
        workgroupBarrier();
        if (part == 0u) {
            $$ for s in some
            {
                let m = meeting({{ s - begin }}u, lane);
                sum{{ s // wide }}_{{ s % wide }} += x_tile[m.x][m.y][m.z];
            }
            $$ endfor
        }
        workgroupBarrier();
        $$ endfor
    }
    if (part > 0u) { return; }
    $$ endif
    $$ for i in range(per_rows)
    $$ if gated
    {
        let row = first + 4u * (ty + {{ i // 4 * 8 }}u) + {{ i % 4 }}u;
        $$ for j in range(wide // 2)
        var v = vec4<f32>();
        for (var c = 0u; c < 4u; c++) { v[c] = gated(sum{{ i }}_{{ j }}[c], sum{{ i }}_{{ j + wide // 2 }}[c]); }
        put(row, column + 4u * (tx + {{ 8 * j }}u), v);
        $$ endfor
    }
    $$ else
    $$ for j in range(wide)
    put(first + 4u * (ty + {{ i // 4 * 8 }}u) + {{ i % 4 }}u, column + 4u * (tx + {{ 8 * j }}u), sum{{ i }}_{{ j }});
    $$ endfor
    $$ endif
    $$ endfor
}

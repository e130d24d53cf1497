// matmul_tiled: y[b, m, n] = sum over k of x[b, m, k] * b[b, k, n] where both are batches of matrices, either of them
// transposed, batches broadcast: a workgroup computes ROWS by COLUMNS of y, each invocation PR by PC in registers; both
// operands pass workgroup memory in slices of DEPTH of the sum, the next slice on its way while one is multiplied.
//
//   ALONG (x_along, b_along): whether products of a sum lie side by side; else its lines do, rows of x or columns of b
//   QUADS (x_quads, b_quads): whether what lies side by side comes in whole quads, and is read in these
//   Slices are stored by products, four lines a vec4; a column more than needed keeps stores apart in memory banks.
//   Dispatch: (batches * ceil(m / ROWS) * ceil(n / COLUMNS)) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const RANK: u32 = {{ rank }}u;
const ROWS: u32 = {{ rows }}u;
const COLUMNS: u32 = {{ columns }}u;
const DEPTH: u32 = {{ depth }}u;
const PER_COLUMNS: u32 = {{ per_columns }}u;
const PER_ROWS: u32 = {{ per_rows }}u;
const ACROSS: u32 = COLUMNS / PER_COLUMNS; // invocations along the columns
const DOWN: u32 = ROWS / PER_ROWS;
{$ include "_epilogue.wgsl" $}
{$ include "_each_workgroup.wgsl" $}

$$ set sides = (("x", rows, x_along, x_quads, "m"), ("b", columns, b_along, b_quads, "n"))
$$ for side, lines, along, quads, limit in sides
var<workgroup> {{ side }}_tile: array<array<vec4<f32>, {{ lines // 4 + 1 }}>, DEPTH>;

$$ if along
// Products k..k+3 of a line of the matrix at `base`.
fn {{ side }}_quad(base: u32, line: u32, k: u32) -> vec4<f32> {
    let row = base + min(line, params.{{ limit }} - 1u) * params.k;
    $$ if quads
    if (k >= params.k) { return vec4<f32>(); }
    return vec4<f32>(load4_{{ side }}((row + k) / 4u));
    $$ else
    var v = vec4<f32>();
    for (var lane = 0u; lane < 4u; lane++) { if (k + lane < params.k) { v[lane] = load_{{ side }}(row + k + lane); } }
    return v;
    $$ endif
}
$$ else
// Product k of the lines line..line+3 of the matrix at `base`; what lies outside is not stored.
fn {{ side }}_quad(base: u32, line: u32, k: u32) -> vec4<f32> {
    if (k >= params.k || line >= params.{{ limit }}) { return vec4<f32>(); }
    let row = base + k * params.{{ limit }} + line;
    $$ if quads
    return vec4<f32>(load4_{{ side }}(row / 4u));
    $$ else
    var v = vec4<f32>();
    for (var lane = 0u; lane < 4u; lane++) {
        if (line + lane < params.{{ limit }}) { v[lane] = load_{{ side }}(row + lane); }
    }
    return v;
    $$ endif
}
$$ endif
$$ endfor

fn across() -> u32 { return (params.n + COLUMNS - 1u) / COLUMNS; }
fn tiles() -> u32 { return (params.m + ROWS - 1u) / ROWS * across(); }
fn units() -> u32 { return params.count / (params.m * params.n) * tiles(); }

fn keep(batch: u32, row: u32, c4: u32, sum: vec4<f32>) {
    if (row >= params.m || 4u * c4 >= params.n) { return; }
    let pixel = batch * params.m + row;
    let v = finish(sum, pixel, c4);
    $$ if n_quads
    store4_y(pixel * (params.n / 4u) + c4, v);
    $$ else
    for (var lane = 0u; lane < min(4u, params.n - 4u * c4); lane++) {
        store_y(pixel * params.n + 4u * c4 + lane, v[lane]);
    }
    $$ endif
}

fn compute(unit: u32, local: u32) {
    let batch = unit / tiles();
    let first_row = unit % tiles() / across() * ROWS;
    let first_quad = unit % across() * (COLUMNS / 4u);
    var rest = batch;
    var x_base = 0u;
    var b_base = 0u;
    for (var back = 0u; back < RANK; back++) {
        let d = RANK - 1u - back;
        x_base += rest % size_at(d) * a_batch_at(d);
        b_base += rest % size_at(d) * b_batch_at(d);
        rest /= size_at(d);
    }
    let lane = local % 32u;
    let tx = local / 32u % (ACROSS / 8u) * 8u + lane % 8u;
    let ty = local / 32u / (ACROSS / 8u) * 4u + lane / 8u;

    // What this invocation carries into workgroup memory: of each operand blocks of four lines by four products, or quads.
    $$ for side, lines, along, quads, limit in sides
    $$ set each = 4 if along else 1
    $$ set items = lines // 4 * (depth // each)
    $$ for t in range((items + workgroup - 1) // workgroup)
    $$ if along
    let {{ side }}_k{{ t }} = (local + {{ t * workgroup }}u) % (DEPTH / 4u) * 4u;
    let {{ side }}_line{{ t }} = (local + {{ t * workgroup }}u) / (DEPTH / 4u);
    $$ else
    let {{ side }}_k{{ t }} = (local + {{ t * workgroup }}u) / {{ lines // 4 }}u;
    let {{ side }}_line{{ t }} = (local + {{ t * workgroup }}u) % {{ lines // 4 }}u;
    $$ endif
    $$ for i in range(each)
    var next_{{ side }}{{ t }}_{{ i }} = vec4<f32>();
    $$ endfor
    $$ endfor
    $$ endfor
    $$ for i in range(per_rows)
    $$ for j in range(per_columns // 4)
    var s{{ i }}_{{ j }} = vec4<f32>();
    $$ endfor
    $$ endfor

    let steps = (params.k + DEPTH - 1u) / DEPTH;
    for (var step = 0u; step <= steps; step++) {
        if (step < steps) {
            $$ for side, lines, along, quads, limit in sides
            $$ set each = 4 if along else 1
            $$ set items = lines // 4 * (depth // each)
            $$ set first = "first_row" if side == "x" else "4u * first_quad"
            $$ for t in range((items + workgroup - 1) // workgroup)
            if ({{ side }}_k{{ t }} < DEPTH && {{ side }}_line{{ t }} < {{ lines // 4 }}u) {
                $$ for i in range(each)
                next_{{ side }}{{ t }}_{{ i }} = {{ side }}_quad(
                    {{ side }}_base, {{ first }} + 4u * {{ side }}_line{{ t }} + {{ i }}u, step * DEPTH + {{ side }}_k{{ t }},
                );
                $$ endfor
            }
            $$ endfor
            $$ endfor
        }
        if (step > 0u) {
            $$ if unroll == depth
            const k = 0u;
            {
            $$ else
            for (var k = 0u; k < DEPTH; k += {{ unroll }}u) {
            $$ endif
            $$ for u in range(unroll)
            {
                $$ for i in range(per_rows // 4)
                let x{{ i }} = x_tile[k + {{ u }}u][ty + {{ i }}u * DOWN];
                $$ endfor
                $$ for j in range(per_columns // 4)
                let w{{ j }} = b_tile[k + {{ u }}u][tx + {{ j }}u * ACROSS];
                $$ endfor
                $$ for i in range(per_rows)
                $$ for j in range(per_columns // 4)
                s{{ i }}_{{ j }} += x{{ i // 4 }}[{{ i % 4 }}] * w{{ j }};
                $$ endfor
                $$ endfor
            }
            $$ endfor
            }
        }
        workgroupBarrier();
        $$ for side, lines, along, quads, limit in sides
        $$ set each = 4 if along else 1
        $$ set items = lines // 4 * (depth // each)
        $$ for t in range((items + workgroup - 1) // workgroup)
        if ({{ side }}_k{{ t }} < DEPTH && {{ side }}_line{{ t }} < {{ lines // 4 }}u) {
            $$ if along
            $$ for c in range(4)
            {{ side }}_tile[{{ side }}_k{{ t }} + {{ c }}u][{{ side }}_line{{ t }}] = vec4<f32>(
                $$ for i in range(4)
                next_{{ side }}{{ t }}_{{ i }}[{{ c }}],
                $$ endfor
            );
            $$ endfor
            $$ else
            {{ side }}_tile[{{ side }}_k{{ t }}][{{ side }}_line{{ t }}] = next_{{ side }}{{ t }}_0;
            $$ endif
        }
        $$ endfor
        $$ endfor
        workgroupBarrier();
    }
    $$ for i in range(per_rows)
    $$ for j in range(per_columns // 4)
    keep(
        batch, first_row + 4u * (ty + {{ i // 4 }}u * DOWN) + {{ i % 4 }}u, first_quad + tx + {{ j }}u * ACROSS,
        s{{ i }}_{{ j }},
    );
    $$ endfor
    $$ endfor
}

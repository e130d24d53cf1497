// conv2d_tiled: a convolution as a matrix product of gathered rows: a workgroup computes ROWS pixels by COLUMNS
// output channels, each invocation PR pixels by PC channels in registers; both operands pass workgroup memory in
// slices of DEPTH of the sum, the next slice on its way while one is multiplied.
//
//   x  [N, IH, IW, CI]           read in quads, or one by one if CI % 4 != 0
//   gate  [CI]                   factors of the channels of x, if `gated`: then N = 1, and x is read as it lies, in quads
//   addend  [1, IH, IW, CI]      added to x times the factors, if `lifted`
//   w  [KH * KW * CI, CO/4]      vec4 of output channels, packed at load, zeros behind CO
//   y  [N, OH, OW, CO]           written in quads, or one by one if CO % 4 != 0
//   Needs: one group, real numbers.  Padded taps count as 0.
//   The slice of x is stored transposed, four rows a vec4; lanes of 32 cover 8 quads of columns by 4 of rows.
//   PARTS groups of WG invocations share the sums of a workgroup, each a part of every sum, and meet in workgroup memory:
//   for products with fewer workgroups than a device runs at a time.
//   With SPLIT > 1 workgroups share sums as well: y [SPLIT, pixels, 4*ceil(CO/4)] has the parts, for product_parts.
//   Dispatch: (ceil(pixels/ROWS) * ceil(CO/COLUMNS) * SPLIT) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u; // invocations of a part
const ROWS: u32 = {{ rows }}u;
const COLUMNS: u32 = {{ columns }}u;
const DEPTH: u32 = {{ depth }}u;
const PR: u32 = {{ per_rows }}u;
const PC: u32 = {{ per_columns }}u;
const BUFFERS: u32 = {{ buffers }}u;
const PARTS: u32 = {{ parts }}u;
const SPLIT: u32 = {{ split }}u;
const UNROLL: u32 = {{ unroll }}u;
// RAGGED: 1 if the last slice of a sum is not full; UNIT: elements of x in one load.
const RAGGED: u32 = {{ ragged }}u;
const UNIT: u32 = {{ unit }}u;
const QUADS: u32 = COLUMNS / 4u;
const ACROSS: u32 = COLUMNS / PC; // invocations along the columns
const DOWN: u32 = ROWS / PR;
const X_BLOCKS: u32 = ROWS / 4u * (DEPTH / 4u); // four rows by four products each
const W_QUADS: u32 = DEPTH * QUADS;
{$ include "_epilogue.wgsl" $}
$$ if split == 1
{$ include "_put.wgsl" $}
$$ endif

$$ set x_blocks = (rows * depth // 16 + workgroup - 1) // workgroup
$$ set w_quads = (columns * depth // 4 + workgroup - 1) // workgroup
$$ set x_partial = (rows * depth // 16) % workgroup != 0
$$ set w_partial = (columns * depth // 4) % workgroup != 0
// A row more than needed keeps transposing stores apart in memory banks.
var<workgroup> x_tile: array<array<array<vec4<f32>, ROWS / 4u + 1u>, DEPTH>, BUFFERS * PARTS>;
var<workgroup> w_tile: array<array<array<vec4<f32>, QUADS>, DEPTH>, BUFFERS * PARTS>;
$$ if parts > 1
var<workgroup> met: array<array<vec4<f32>, WG>, {{ per_rows * per_columns // 4 }}>;
$$ endif

// Where product k of a row is loaded from, in loads.
struct Place { inside: bool, at: u32 }

// Products of one result.
$$ if pointwise
fn products() -> u32 { return params.sum; }
$$ else
const KW: u32 = {{ kw }}u;
const CI: u32 = {{ ci }}u;
const SUM: u32 = {{ sum }}u;
fn products() -> u32 { return SUM; }
$$ endif

$$ if pointwise
// Where a row of x begins, in loads.
alias Row = u32;
fn row_at(pixel: u32) -> Row { return min(pixel, params.pixels - 1u) * (params.sum / UNIT); }
fn place_of(row: Row, k: u32) -> Place {
    let inside = RAGGED == 0u || k < params.sum;
    return Place(inside, row + select(0u, k, inside) / UNIT);
}
$$ else
// The pixel that a row looks at, without the tap: (first row of its image, top, left).
alias Row = vec3<i32>;
fn row_at(wanted: u32) -> Row {
    let pixel = min(wanted, params.pixels - 1u);
    return Row(
        i32(pixel / (params.oh * params.ow) * params.ih),
        i32((pixel / params.ow) % params.oh * params.stride_h) - params.pad_top,
        i32(pixel % params.ow * params.stride_w) - params.pad_left,
    );
}
fn place_of(row: Row, k: u32) -> Place {
    let tap = k / CI;
    let iy = row.y + i32(tap / KW * params.dilation_h);
    let ix = row.z + i32(tap % KW * params.dilation_w);
    let inside = k < products() && iy >= 0 && iy < i32(params.ih) && ix >= 0 && ix < i32(params.iw);
    let pixel = select(0u, u32((row.x + iy) * i32(params.iw) + ix), inside);
    return Place(inside, pixel * (CI / UNIT) + k % CI / UNIT);
}
$$ endif

$$ if split > 1
fn keep(share: u32, pixel: u32, c4: u32, sum: vec4<f32>) {
    if (pixel < params.pixels && c4 < params.co4) { store4_y((share * params.pixels + pixel) * params.co4 + c4, sum); }
}
$$ endif

// What is fetched early and widened late: a conversion would wait for the memory before the products are done.
$$ if quads
alias Factors = x_raw;
fn widened(f: Factors) -> vec4<f32> { return widen_x(f); }
fn factors_at(row: Row, k: u32) -> Factors {
    let p = place_of(row, k);
    return select(Factors(), fetch4_x(p.at), p.inside);
}
$$ else
alias Factors = vec4<f32>;
fn widened(f: Factors) -> vec4<f32> { return f; }
fn factors_at(row: Row, k: u32) -> Factors {
    var v: vec4<f32>;
    for (var lane = 0u; lane < 4u; lane++) {
        let p = place_of(row, k + lane);
        v[lane] = select(0.0, input1(p.at), p.inside);
    }
    return v;
}
$$ endif

$$ if lifted
fn addends_at(row: Row, k: u32) -> vec4<f32> {
    let p = place_of(row, k);
    return select(vec4<f32>(), load4_addend(p.at), p.inside);
}
$$ endif

fn weights_at(k: u32, c4: u32) -> w_raw {
    let inside = RAGGED == 0u || k < products();
    return select(w_raw(), fetch4_w(select(0u, k, inside) * params.co4 + c4), inside);
}

@compute @workgroup_size(WG * PARTS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) invocation: u32,
) {
    $$ if parts > 1
    let local = invocation % WG;
    let part = invocation / WG;
    $$ else
    let local = invocation;
    const part = 0u;
    $$ endif
    let blocks = (params.co4 + QUADS - 1u) / QUADS;
    $$ if split > 1
    let tiles = (params.pixels + ROWS - 1u) / ROWS * blocks;
    let share = (group.x + group.y * groups.x) / tiles; // spare workgroups of a folded dispatch have none
    let index = (group.x + group.y * groups.x) % tiles;
    $$ else
    const share = 0u;
    let index = group.x + group.y * groups.x;
    $$ endif
    let first_row = index / blocks * ROWS;
    let first_quad = index % blocks * QUADS;
    let lane = local % 32u;
    let tx = local / 32u % (ACROSS / 8u) * 8u + lane % 8u;
    let ty = local / 32u / (ACROSS / 8u) * 4u + lane / 8u;

    // What this invocation carries into workgroup memory.
    $$ for b in range(x_blocks)
    let x_row{{ b }} = (local + {{ b }}u * WG) / (DEPTH / 4u);
    let x_k{{ b }} = (local + {{ b }}u * WG) % (DEPTH / 4u) * 4u;
    $$ for i in range(4)
    let x_at{{ b }}_{{ i }} = row_at(first_row + 4u * x_row{{ b }} + {{ i }}u);
    var next_x{{ b }}_{{ i }} = Factors();
    $$ if lifted
    var next_z{{ b }}_{{ i }} = vec4<f32>();
    $$ endif
    $$ endfor
    $$ if gated
    var next_gate{{ b }} = vec4<f32>();
    $$ endif
    $$ endfor
    $$ for b in range(w_quads)
    let w_k{{ b }} = (local + {{ b }}u * WG) / QUADS;
    let w_c{{ b }} = (local + {{ b }}u * WG) % QUADS;
    let w_at{{ b }} = min(first_quad + w_c{{ b }}, params.co4 - 1u);
    var next_w{{ b }} = w_raw();
    $$ endfor
    $$ for i in range(per_rows)
    $$ for j in range(per_columns // 4)
    var s{{ i }}_{{ j }} = vec4<f32>();
    $$ endfor
    $$ endfor

    let steps = (products() + DEPTH * PARTS * SPLIT - 1u) / (DEPTH * PARTS * SPLIT);
    let begin = (share * PARTS + part) * steps * DEPTH;
    for (var step = 0u; step <= steps; step++) {
        let slot = part * BUFFERS + step % BUFFERS;
        let done = part * BUFFERS + (step + BUFFERS - 1u) % BUFFERS;
        if (step < steps) {
            $$ for b in range(x_blocks)
            $$ if x_partial
            if (local + {{ b }}u * WG < X_BLOCKS) {
            $$ else
            {
            $$ endif
                $$ for i in range(4)
                next_x{{ b }}_{{ i }} = factors_at(x_at{{ b }}_{{ i }}, begin + step * DEPTH + x_k{{ b }});
                $$ if lifted
                next_z{{ b }}_{{ i }} = addends_at(x_at{{ b }}_{{ i }}, begin + step * DEPTH + x_k{{ b }});
                $$ endif
                $$ endfor
                $$ if gated
                next_gate{{ b }} = load4_gate(min(begin + step * DEPTH + x_k{{ b }}, products() - 1u) / 4u);
                $$ endif
            }
            $$ endfor
            $$ for b in range(w_quads)
            $$ if w_partial
            if (local + {{ b }}u * WG < W_QUADS) {
            $$ else
            {
            $$ endif
                next_w{{ b }} = weights_at(begin + step * DEPTH + w_k{{ b }}, w_at{{ b }});
            }
            $$ endfor
        }
        if (step > 0u) {
            $$ if unroll == depth
            const k = 0u;
            {
            $$ else
            for (var k = 0u; k < DEPTH; k += UNROLL) {
            $$ endif
                $$ for u in range(unroll)
                {
                    $$ for i in range(per_rows // 4)
                    let x{{ i }} = x_tile[done][k + {{ u }}u][ty + {{ i }}u * DOWN];
                    $$ endfor
                    $$ for j in range(per_columns // 4)
                    let w{{ j }} = w_tile[done][k + {{ u }}u][tx + {{ j }}u * ACROSS];
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
        $$ if buffers == 1
        workgroupBarrier();
        $$ endif
        $$ for b in range(x_blocks)
        $$ if x_partial
        if (local + {{ b }}u * WG < X_BLOCKS) {
        $$ else
        {
        $$ endif
            $$ for i in range(4)
            $$ if lifted
            let f{{ i }} = widened(next_x{{ b }}_{{ i }}) * next_gate{{ b }} + next_z{{ b }}_{{ i }};
            $$ elif gated
            let f{{ i }} = widened(next_x{{ b }}_{{ i }}) * next_gate{{ b }};
            $$ else
            let f{{ i }} = widened(next_x{{ b }}_{{ i }});
            $$ endif
            $$ endfor
            $$ for i in range(4)
            x_tile[slot][x_k{{ b }} + {{ i }}u][x_row{{ b }}] = vec4<f32>(f0[{{ i }}], f1[{{ i }}], f2[{{ i }}], f3[{{ i }}]);
            $$ endfor
        }
        $$ endfor
        $$ for b in range(w_quads)
        $$ if w_partial
        if (local + {{ b }}u * WG < W_QUADS) {
        $$ else
        {
        $$ endif
            w_tile[slot][w_k{{ b }}][w_c{{ b }}] = widen_w(next_w{{ b }});
        }
        $$ endfor
        workgroupBarrier();
    }

    $$ if parts > 1
    for (var other = 1u; other < PARTS; other++) {
        if (part == other) {
            $$ for i in range(per_rows)
            $$ for j in range(per_columns // 4)
            met[{{ i * (per_columns // 4) + j }}][local] = s{{ i }}_{{ j }};
            $$ endfor
            $$ endfor
        }
        workgroupBarrier();
        if (part == 0u) {
            $$ for i in range(per_rows)
            $$ for j in range(per_columns // 4)
            s{{ i }}_{{ j }} += met[{{ i * (per_columns // 4) + j }}][local];
            $$ endfor
            $$ endfor
        }
        workgroupBarrier();
    }
    if (part > 0u) { return; }
    $$ endif
    $$ if split > 1
    if (share >= SPLIT) { return; }
    $$ endif
    $$ for i in range(per_rows)
    $$ for j in range(per_columns // 4)
    $$ if split > 1
    keep(
        share, first_row + 4u * (ty + {{ i // 4 }}u * DOWN) + {{ i % 4 }}u, first_quad + tx + {{ j }}u * ACROSS,
        s{{ i }}_{{ j }},
    );
    $$ else
    put(
        first_row + 4u * (ty + {{ i // 4 }}u * DOWN) + {{ i % 4 }}u, first_quad + tx + {{ j }}u * ACROSS,
        s{{ i }}_{{ j }},
    );
    $$ endif
    $$ endfor
    $$ endfor
}

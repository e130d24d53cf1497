// attention_wide: as attention.wgsl, of rows so long that a block of keys does not fit into workgroup memory. Queries and
// keys come SLICE quads of their rows at a time, and values by whole rows, VALUES of them at a time, in the same place.
//
//   Tensors, tiles, masks, `skips`, `spread` and `capped` are those of attention.wgsl.
//   The sums of a logit stay in registers from slice to slice, as those of y do from block to block: an invocation holds
//   per_rows * (quads_keys + per_values) quads. Queries are read anew for each block of keys: kept whole, 32 rows of 256
//   elements would take 33 KB. Two barriers a slice, and two for each VALUES keys.
//   The next slice, or the next values, are on their way meanwhile.
//   With `ragged`, the last slice is not a whole one, and what is behind it is 0.
//   Dispatch: (B * H * ceil(Q / ROWS)) workgroups

{{ prelude }}
const WG: u32 = {{ tx * ty }}u;
const TX: u32 = {{ tx }}u;
const TY: u32 = {{ ty }}u;
const ROWS: u32 = {{ ty * per_rows }}u;
const KEYS: u32 = {{ 4 * tx * quads_keys }}u;
const D4: u32 = {{ d4 }}u;
const E4: u32 = {{ e4 }}u;
const SLICE: u32 = {{ slice }}u; // quads of queries and keys at a time
const VALUES: u32 = {{ values }}u; // values at a time, a divisor of KEYS
const WIDE: u32 = {{ e4 + 1 - e4 % 2 }}u; // quads of a row of values
$$ set per_values = (e4 + tx - 1) // tx
$$ set wg = tx * ty
$$ set keys = 4 * tx * quads_keys
$$ set odd = slice + 1 - slice % 2
const ODD: u32 = {{ slice + 1 - slice % 2 }}u; // quads of a row of queries or keys
$$ set cached = false
$$ set k_loads = (keys * slice + wg - 1) // wg
$$ set v_loads = (values * e4 + wg - 1) // wg
$$ set q_loads = (ty * per_rows * slice + wg - 1) // wg
const LOWEST: f32 = -3.4028234663852886e38;
$$ if skips
const LOW: f32 = -1e30; // masks of this and less hide keys from a row that has seen a logit above HIGH
const HIGH: f32 = -1e29;
$$ endif

{$ include "_quads_of_rows.wgsl" $}

var<workgroup> block_q: array<array<vec4<f32>, ODD>, ROWS>;
var<workgroup> block_kv: array<vec4<f32>, {{ [keys * (slice + 1 - slice % 2), values * (e4 + 1 - e4 % 2)] | max }}>;
var<workgroup> block_p: array<array<vec4<f32>, {{ tx * quads_keys + 1 }}>, ROWS>; // weights
var<workgroup> shared_tops: array<array<f32, TX>, ROWS>;

{$ include "_mask_of_keys.wgsl" $}
{$ include "_soft_cap.wgsl" $}

// The larger one; a NaN is none.
fn larger(a: f32, b: f32) -> f32 { return select(a, b, b > a); }

// Quad i of a slice of queries or keys that begins with quad `d` of row `first`; behind the last row, its own once more.
fn query_quad(at: u32, first: u32, d: u32, i: u32) -> vec4<f32> {
    $$ if ragged
    if (d + i % SLICE >= D4) { return vec4<f32>(); }
    $$ endif
    return quad_q(at + min(first + i / SLICE, params.queries - 1u) * params.q_row, d + i % SLICE) * params.scale;
}
fn key_quad(at: u32, first: u32, d: u32, i: u32) -> vec4<f32> {
    $$ if ragged
    if (d + i % SLICE >= D4) { return vec4<f32>(); }
    $$ endif
    return quad_k(at + min(first + i / SLICE, params.keys - 1u) * params.k_row, d + i % SLICE);
}
fn value_quad(at: u32, first: u32, i: u32) -> vec4<f32> {
    return quad_v(at + min(first + i / E4, params.keys - 1u) * params.v_row, i % E4);
}

{$ include "_each_workgroup.wgsl" $}

fn blocks() -> u32 { return (params.queries + ROWS - 1u) / ROWS; }
fn units() -> u32 { return params.heads * blocks(); }
fn compute(unit: u32, local: u32) {
    let head = unit / blocks() % params.per_batch;
    let batch = unit / blocks() / params.per_batch;
    let first_row = unit % blocks() * ROWS;
    let tx = local % TX;
    let ty = local / TX;
    let keys = params.keys;

    let at_q = params.q_first + batch * params.q_batch + head * params.q_head;
    let at_k = params.k_first + batch * params.k_batch + head / params.share * params.k_head;
    let at_v = params.v_first + batch * params.v_batch + head / params.share * params.v_head;
    $$ for i in range(per_rows)
    let row{{ i }} = ty + {{ i }}u * TY;
    var top{{ i }} = LOWEST;
    var total{{ i }} = 0.0;
    $$ if spread
    let at_mask{{ i }} = batch * vec2<u32>(params.mask_batch, params.columns_batch)
        + head * vec2<u32>(params.mask_head, params.columns_head)
        + min(first_row + row{{ i }}, params.queries - 1u) * vec2<u32>(params.mask_row, params.columns_row);
    $$ elif masked
    let at_mask{{ i }} = batch * params.mask_batch + head * params.mask_head
        + min(first_row + row{{ i }}, params.queries - 1u) * params.mask_row;
    $$ endif
    $$ for j in range(per_values)
    var y{{ i }}_{{ j }} = vec4<f32>();
    $$ endfor
    $$ endfor
    $$ for b in range(q_loads)
    var next_q{{ b }} = query_quad(at_q, first_row, 0u, local + {{ b * wg }}u);
    $$ endfor
    $$ for b in range(k_loads)
    var next_k{{ b }} = key_quad(at_k, 0u, 0u, local + {{ b * wg }}u);
    $$ endfor

    for (var first = 0u; first < keys; first += KEYS) {
        $$ if skips
        // Hidden is what weighs nothing, whatever its logit: -inf, or a very low number beside a logit that is none.
        $$ for i in range(per_rows)
        $$ for j in range(quads_keys)
        let m{{ i }}_{{ j }} = mask_quad(at_mask{{ i }}, first + 4u * (tx + {{ j }}u * TX));
        if (!hides(m{{ i }}_{{ j }}, top{{ i }} > HIGH)) { visible = first + 1u; }
        $$ endfor
        $$ endfor
        if (workgroupUniformLoad(&visible) != first + 1u) {
            $$ for b in range(k_loads)
            next_k{{ b }} = key_quad(at_k, first + KEYS, 0u, local + {{ b * wg }}u);
            $$ endfor
            continue;
        }
        $$ endif
        // Logits.
        $$ for i in range(per_rows)
        $$ for j in range(quads_keys)
        var s{{ i }}_{{ j }} = vec4<f32>();
        $$ endfor
        $$ endfor
        for (var slice = 0u; slice < D4; slice += SLICE) {
            $$ for b in range(q_loads)
            {
                let i = local + {{ b * wg }}u;
                if (i < ROWS * SLICE) { block_q[i / SLICE][i % SLICE] = next_q{{ b }}; }
            }
            $$ endfor
            $$ for b in range(k_loads)
            {
                let i = local + {{ b * wg }}u;
                let key = i / SLICE;
                if (i < KEYS * SLICE) { block_kv[(key % 4u * (KEYS / 4u) + key / 4u) * ODD + i % SLICE] = next_k{{ b }}; }
            }
            $$ endfor
            workgroupBarrier();
            if (slice + SLICE < D4) {
                $$ for b in range(q_loads)
                next_q{{ b }} = query_quad(at_q, first_row, slice + SLICE, local + {{ b * wg }}u);
                $$ endfor
                $$ for b in range(k_loads)
                next_k{{ b }} = key_quad(at_k, first, slice + SLICE, local + {{ b * wg }}u);
                $$ endfor
            }
            for (var d = 0u; d < SLICE; d += {{ unroll_d }}u) {
                $$ for u in range(unroll_d)
                {
                    $$ for i in range(per_rows)
                    let q{{ i }} = block_q[row{{ i }}][d + {{ u }}u];
                    $$ endfor
                    $$ for j in range(quads_keys)
                    {
                        $$ for c in range(4)
                        let k{{ c }} = block_kv[({{ c }}u * (KEYS / 4u) + tx + {{ j }}u * TX) * ODD + d + {{ u }}u];
                        $$ endfor
                        $$ for c in range(4)
                        let t{{ c }} = vec4<f32>(k0[{{ c }}], k1[{{ c }}], k2[{{ c }}], k3[{{ c }}]);
                        $$ endfor
                        $$ for c in range(4)
                        $$ for i in range(per_rows)
                        s{{ i }}_{{ j }} += q{{ i }}[{{ c }}] * t{{ c }};
                        $$ endfor
                        $$ endfor
                    }
                    $$ endfor
                }
                $$ endfor
            }
            workgroupBarrier();
        }
        $$ for b in range(v_loads)
        var next_v{{ b }} = value_quad(at_v, first, local + {{ b * wg }}u);
        $$ endfor

{$ include "_softmax_of_block.wgsl" $}
        for (var part = 0u; part < min(KEYS, keys - first); part += VALUES) {
            $$ for b in range(v_loads)
            {
                let i = local + {{ b * wg }}u;
                if (i < VALUES * E4) { block_kv[i / E4 * WIDE + i % E4] = next_v{{ b }}; }
            }
            $$ endfor
            workgroupBarrier();
            if (part + VALUES < KEYS) {
                $$ for b in range(v_loads)
                next_v{{ b }} = value_quad(at_v, first + part + VALUES, local + {{ b * wg }}u);
                $$ endfor
            }
            for (var k = 0u; k < VALUES / 4u; k += {{ unroll_k }}u) {
                $$ for u in range(unroll_k)
                {
                    $$ for i in range(per_rows)
                    let p{{ i }} = block_p[row{{ i }}][part / 4u + k + {{ u }}u];
                    $$ endfor
                    $$ for c in range(4)
                    $$ for j in range(per_values)
                    {
                        let v = block_kv[(4u * k + {{ 4 * u + c }}u) * WIDE + tx + {{ j }}u * TX];
                        $$ for i in range(per_rows)
                        y{{ i }}_{{ j }} += p{{ i }}[{{ c }}] * v;
                        $$ endfor
                    }
                    $$ endfor
                    $$ endfor
                }
                $$ endfor
            }
            workgroupBarrier();
        }
        $$ for b in range(q_loads)
        next_q{{ b }} = query_quad(at_q, first_row, 0u, local + {{ b * wg }}u);
        $$ endfor
        $$ for b in range(k_loads)
        next_k{{ b }} = key_quad(at_k, first + KEYS, 0u, local + {{ b * wg }}u);
        $$ endfor
    }

{$ include "_attention_results.wgsl" $}
}

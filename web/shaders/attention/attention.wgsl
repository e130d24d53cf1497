// attention: y = softmax(q kT * scale + mask) v, without a row of logits in memory. A workgroup computes ROWS queries of
// a head; keys, then their values, come in blocks of KEYS through workgroup memory, and what is summed so far shrinks
// when a block brings a larger logit.
//
//   q [B, H, Q, D], k [B, G, K, D], v [B, G, K, E], mask [.., K], columns, y [B, H, Q, E], laid out as the strides say: of
//   batches, heads and rows, behind the first element of q, k and v.
//   TX by TY invocations; each computes PR rows (ty + i * TY) by `quads_keys` quads of logits, and the same rows by
//   `quads_values` quads of y, all in registers. Rows in workgroup memory are odd numbers of quads long, which keeps
//   neighbouring rows apart in memory banks; a row's invocations meet in `shared_tops`, three barriers a block.
//   Key k lies in slot k % 4 * KEYS / 4 + k / 4: an invocation has four neighbouring keys, and neighbours other slots.
//   With `skips`, blocks of keys that the mask hides from all rows of a workgroup are left out: causal and windowed masks.
//   The mask of the next block is on its way meanwhile.
//   With `spread`, the mask of key i is mask[i / spread] + columns[i % spread]: no tensor of all pairs of places is made.
//   With `cached`, q [1, Q, H, D] meets a cache: k [G, CAPACITY/8, D, 8] and v [G, CAPACITY, D]; place says the position of
//   the first query and how many count. A query sees the keys up to its own position; y is 0 for those that do not count.
//   With `capped`, a scaled logit x is cap * tanh(x / cap) before the mask is added.
//   With `ahead`, values are on their way while logits are computed, and the next keys while values are summed.
//   Loops are written out, `unroll_d` quads of a logit and `unroll_k` quads of keys at a time: places in workgroup memory
//   are then known but for the row, and no index is checked again and again.
//   Dispatch: (B * H * ceil(Q / ROWS)) workgroups

{{ prelude }}
const WG: u32 = {{ tx * ty }}u;
const TX: u32 = {{ tx }}u;
const TY: u32 = {{ ty }}u;
const ROWS: u32 = {{ ty * per_rows }}u;
const KEYS: u32 = {{ 4 * tx * quads_keys }}u;
const D4: u32 = {{ d4 }}u;
const E4: u32 = {{ e4 }}u;
$$ set per_values = (e4 + tx - 1) // tx
$$ set wide = d4 if d4 > e4 else e4
const WIDE: u32 = {{ wide + 1 - wide % 2 }}u; // quads of a row of keys or values
$$ set wg = tx * ty
$$ set keys = 4 * tx * quads_keys
$$ set k_loads = (keys * d4 + wg - 1) // wg
$$ set v_loads = (keys * e4 + wg - 1) // wg
$$ set q_loads = (ty * per_rows * d4 + wg - 1) // wg
const LOWEST: f32 = -3.4028234663852886e38;
$$ if skips
const LOW: f32 = -1e30; // masks of this and less hide keys from a row that has seen a logit above HIGH
const HIGH: f32 = -1e29;
$$ endif

{$ include "_quads_of_rows.wgsl" $}

var<workgroup> block_q: array<array<vec4<f32>, {{ d4 + 1 - d4 % 2 }}>, ROWS>;
var<workgroup> block_kv: array<array<vec4<f32>, WIDE>, KEYS>; // keys, then values
var<workgroup> block_p: array<array<vec4<f32>, {{ tx * quads_keys + 1 }}>, ROWS>; // weights
var<workgroup> shared_tops: array<array<f32, TX>, ROWS>;

{$ include "_mask_of_keys.wgsl" $}
{$ include "_soft_cap.wgsl" $}

// The larger one; a NaN is none.
fn larger(a: f32, b: f32) -> f32 { return select(a, b, b > a); }

// Quad i of a block of keys or values that begins with key `first`; behind the last of `keys`, its own once more.
$$ if cached
// Elements i / 2 % D of four keys, in the order in which they lie.
fn key_quad(at: u32, first: u32, i: u32, keys: u32) -> vec4<f32> {
    let eight = min(first + i / (8u * D4) * 8u, params.keys - 8u);
    return load4_k((at + eight * params.k_row) / 4u + i % (8u * D4));
}
$$ else
fn key_quad(at: u32, first: u32, i: u32, keys: u32) -> vec4<f32> {
    return quad_k(at + min(first + i / D4, keys - 1u) * params.k_row, i % D4);
}
$$ endif
fn value_quad(at: u32, first: u32, i: u32, keys: u32) -> vec4<f32> {
    return quad_v(at + min(first + i / E4, keys - 1u) * params.v_row, i % E4);
}
$$ if cached

// How many queries count, and how many keys the one of this number sees.
fn counting() -> u32 {
    let first = load_place(0u);
    let some = min(load_place(1u), i32(params.queries));
    return u32(select(some, 0, first < 0 || some < 1 || some > i32(params.keys) - first));
}
fn seen_by(query: u32) -> u32 { return select(0u, u32(load_place(0u)) + query + 1u, query < counting()); }
$$ endif

{$ include "_each_workgroup.wgsl" $}

fn blocks() -> u32 { return (params.queries + ROWS - 1u) / ROWS; }
fn units() -> u32 { return params.heads * blocks(); }
fn compute(unit: u32, local: u32) {
    let head = unit / blocks() % params.per_batch;
    let batch = unit / blocks() / params.per_batch;
    let first_row = unit % blocks() * ROWS;
    let tx = local % TX;
    let ty = local / TX;

    let at_q = params.q_first + batch * params.q_batch + head * params.q_head;
    let at_k = params.k_first + batch * params.k_batch + head / params.share * params.k_head;
    let at_v = params.v_first + batch * params.v_batch + head / params.share * params.v_head;
    $$ for b in range(q_loads)
    {
        let i = local + {{ b * wg }}u;
        $$ if (ty * per_rows * d4) % wg
        if (i < ROWS * D4) {
        $$ else
        {
        $$ endif
            let row = min(first_row + i / D4, params.queries - 1u);
            block_q[i / D4][i % D4] = quad_q(at_q + row * params.q_row, i % D4) * params.scale;
        }
    }
    $$ endfor
    $$ for i in range(per_rows)
    let row{{ i }} = ty + {{ i }}u * TY;
    $$ if cached
    let end{{ i }} = seen_by(first_row + row{{ i }});
    $$ endif
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
    $$ if cached
    // The last query that counts sees the most keys.
    let keys = select(0u, seen_by(min(first_row + ROWS, counting()) - 1u), first_row < counting());
    $$ else
    let keys = params.keys;
    $$ endif
    $$ for b in range(k_loads)
    var next_k{{ b }} = key_quad(at_k, 0u, local + {{ b * wg }}u, keys);
    $$ endfor

    $$ if skips
    $$ for i in range(per_rows)
    $$ for j in range(quads_keys)
    var next_m{{ i }}_{{ j }} = mask_quad(at_mask{{ i }}, 4u * (tx + {{ j }}u * TX));
    $$ endfor
    $$ endfor
    $$ endif

    for (var first = 0u; first < keys; first += KEYS) {
        $$ if skips
        $$ for i in range(per_rows)
        $$ for j in range(quads_keys)
        let m{{ i }}_{{ j }} = next_m{{ i }}_{{ j }};
        next_m{{ i }}_{{ j }} = mask_quad(at_mask{{ i }}, first + KEYS + 4u * (tx + {{ j }}u * TX));
        $$ endfor
        $$ endfor
        // Hidden is what weighs nothing, whatever its logit: -inf, or a very low number beside a logit that is none.
        $$ for i in range(per_rows)
        $$ for j in range(quads_keys)
        if (!hides(m{{ i }}_{{ j }}, top{{ i }} > HIGH)) { visible = first + 1u; }
        $$ endfor
        $$ endfor
        if (workgroupUniformLoad(&visible) != first + 1u) {
            $$ for b in range(k_loads)
            next_k{{ b }} = key_quad(at_k, first + KEYS, local + {{ b * wg }}u, keys);
            $$ endfor
            continue;
        }
        $$ endif
        $$ for b in range(k_loads)
        {
            let i = local + {{ b * wg }}u;
            $$ if (keys * d4) % wg
            if (i < KEYS * D4) {
            $$ else
            {
            $$ endif
                $$ if cached
                let e = i / 2u % (4u * D4);
                block_kv[e % 4u * (KEYS / 4u) + i / (8u * D4) * 2u + i % 2u][e / 4u] = next_k{{ b }};
                $$ else
                let key = i / D4;
                block_kv[key % 4u * (KEYS / 4u) + key / 4u][i % D4] = next_k{{ b }};
                $$ endif
            }
        }
        $$ endfor
        workgroupBarrier();
        $$ if ahead
        $$ for b in range(v_loads)
        let next_v{{ b }} = value_quad(at_v, first, local + {{ b * wg }}u, keys);
        $$ endfor
        $$ endif

        // Logits.
        $$ for i in range(per_rows)
        $$ for j in range(quads_keys)
        var s{{ i }}_{{ j }} = vec4<f32>();
        $$ endfor
        $$ endfor
        $$ if unroll_d == d4
        const d = 0u;
        {
        $$ else
        for (var d = 0u; d < D4; d += {{ unroll_d }}u) {
        $$ endif
            $$ for u in range(unroll_d)
            {
                $$ for i in range(per_rows)
                let q{{ i }} = block_q[row{{ i }}][d + {{ u }}u];
                $$ endfor
                $$ for j in range(quads_keys)
                {
                    $$ for c in range(4)
                    let k{{ c }} = block_kv[{{ c }}u * (KEYS / 4u) + tx + {{ j }}u * TX][d + {{ u }}u];
                    $$ endfor
                    $$ for c in range(4)
                    $$ if cached
                    let t{{ c }} = k{{ c }};
                    $$ else
                    let t{{ c }} = vec4<f32>(k0[{{ c }}], k1[{{ c }}], k2[{{ c }}], k3[{{ c }}]);
                    $$ endif
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
{$ include "_softmax_of_block.wgsl" $}
        $$ for b in range(v_loads)
        $$ if not ahead
        let next_v{{ b }} = value_quad(at_v, first, local + {{ b * wg }}u, keys);
        $$ endif
        $$ endfor
        $$ for b in range(v_loads)
        {
            let i = local + {{ b * wg }}u;
            $$ if (keys * e4) % wg
            if (i < KEYS * E4) {
            $$ else
            {
            $$ endif
                block_kv[i / E4][i % E4] = next_v{{ b }};
            }
        }
        $$ endfor
        workgroupBarrier();
        $$ if ahead
        $$ for b in range(k_loads)
        next_k{{ b }} = key_quad(at_k, first + KEYS, local + {{ b * wg }}u, keys);
        $$ endfor
        $$ endif

        $$ if unroll_k == keys // 4
        const k = 0u;
        {
        $$ else
        for (var k = 0u; k < KEYS / 4u; k += {{ unroll_k }}u) {
        $$ endif
            $$ for u in range(unroll_k)
            {
                $$ for i in range(per_rows)
                let p{{ i }} = block_p[row{{ i }}][k + {{ u }}u];
                $$ endfor
                $$ for c in range(4)
                $$ for j in range(per_values)
                {
                    let v = block_kv[4u * k + {{ 4 * u + c }}u][tx + {{ j }}u * TX];
                    $$ for i in range(per_rows)
                    y{{ i }}_{{ j }} += p{{ i }}[{{ c }}] * v;
                    $$ endfor
                }
                $$ endfor
                $$ endfor
            }
            $$ endfor
        }
        $$ if not ahead
        $$ for b in range(k_loads)
        next_k{{ b }} = key_quad(at_k, first + KEYS, local + {{ b * wg }}u, keys);
        $$ endfor
        $$ endif
        workgroupBarrier();
    }

{$ include "_attention_results.wgsl" $}
}

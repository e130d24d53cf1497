// attention: y = softmax(q kT * scale + mask) v. Keys come in blocks through workgroup memory; what is summed so far
// shrinks when a block brings a larger logit, so that no row of logits is ever in memory.
//
//   q [B, H, Q, D], k [B, G, K, D], v [B, G, K, E], mask [.., K], y [B, H, Q, E], laid out as the strides say: of
//   batches, heads and rows.  SPLIT invocations share a query; each takes every SPLIT-th key of a block.
//   Loops over a head's quads are written out: some compilers (wgpu's) keep a query in registers only then.
//   Dispatch: (B * H * ceil(Q / ROWS)) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const SPLIT: u32 = {{ split }}u;
const ROWS: u32 = WG / SPLIT;
// KEYS of a block.
const KEYS: u32 = {{ keys }}u;
const D4: u32 = {{ d4 }}u;
const E4: u32 = {{ e4 }}u;
const LOWEST: f32 = -3.4028234663852886e38;

$$ if quads
fn quad_q(at: u32, d: u32) -> vec4<f32> { return load4_q(at / 4u + d); }
fn quad_k(at: u32, d: u32) -> vec4<f32> { return load4_k(at / 4u + d); }
fn quad_v(at: u32, d: u32) -> vec4<f32> { return load4_v(at / 4u + d); }
$$ else
fn quad_q(at: u32, d: u32) -> vec4<f32> {
    var x: vec4<f32>;
    for (var i = 0u; i < 4u; i++) { if (4u * d + i < params.d) { x[i] = load_q(at + 4u * d + i); } }
    return x;
}
fn quad_k(at: u32, d: u32) -> vec4<f32> {
    var x: vec4<f32>;
    for (var i = 0u; i < 4u; i++) { if (4u * d + i < params.d) { x[i] = load_k(at + 4u * d + i); } }
    return x;
}
fn quad_v(at: u32, d: u32) -> vec4<f32> {
    var x: vec4<f32>;
    for (var i = 0u; i < 4u; i++) { if (4u * d + i < params.e) { x[i] = load_v(at + 4u * d + i); } }
    return x;
}
$$ endif

var<workgroup> block_k: array<vec4<f32>, KEYS * D4>;
var<workgroup> block_v: array<vec4<f32>, KEYS * E4>;
var<workgroup> tops: array<vec2<f32>, WG>;    // (largest logit, sum of weights) of each invocation
var<workgroup> parts: array<vec4<f32>, WG>;

{$ include "_each_workgroup.wgsl" $}

fn blocks() -> u32 { return (params.queries + ROWS - 1u) / ROWS; }
fn units() -> u32 { return params.heads * blocks(); }
fn compute(unit: u32, local: u32) {
    let head = unit / blocks() % params.per_batch;
    let batch = unit / blocks() / params.per_batch;
    let row = unit % blocks() * ROWS + local / SPLIT;
    let own = local % SPLIT;
    let query = min(row, params.queries - 1u);

    let at_q = batch * params.q_batch + head * params.q_head + query * params.q_row;
    let at_k = batch * params.k_batch + head / params.share * params.k_head;
    let at_v = batch * params.v_batch + head / params.share * params.v_head;
    $$ if masked
    let at_mask = batch * params.mask_batch + head * params.mask_head + query * params.mask_row;
    $$ endif
    $$ for d in range(d4)
    let x{{ d }} = quad_q(at_q, {{ d }}u) * params.scale;
    $$ endfor
    $$ for d in range(e4)
    var sum{{ d }} = vec4<f32>();
    $$ endfor
    var top = LOWEST;
    var total = 0.0;
    for (var first = 0u; first < params.keys; first += KEYS) {
        workgroupBarrier();
        for (var i = local; i < KEYS * D4; i += WG) {
            block_k[i] = quad_k(at_k + min(first + i / D4, params.keys - 1u) * params.k_row, i % D4);
        }
        for (var i = local; i < KEYS * E4; i += WG) {
            block_v[i] = quad_v(at_v + min(first + i / E4, params.keys - 1u) * params.v_row, i % E4);
        }
        workgroupBarrier();
        let count = min(KEYS, params.keys - first);
        for (var j = own; j < count; j += SPLIT) {
            var products = vec4<f32>();
            $$ for d in range(d4)
            products += x{{ d }} * block_k[j * D4 + {{ d }}u];
            $$ endfor
            var logit = dot(products, vec4<f32>(1.0));
            $$ if masked
            logit += load_mask(at_mask + first + j);
            $$ endif
            if (logit > top) {
                let shrink = exp(top - logit);
                $$ for d in range(e4)
                sum{{ d }} *= shrink;
                $$ endfor
                total *= shrink;
                top = logit;
            }
            let weight = exp(logit - top);
            total += weight;
            $$ for d in range(e4)
            sum{{ d }} += weight * block_v[j * E4 + {{ d }}u];
            $$ endfor
        }
    }

    // The invocations of a query put their parts together.
    tops[local] = vec2<f32>(top, total);
    workgroupBarrier();
    let leader = local - own;
    var most = LOWEST;
    for (var i = 0u; i < SPLIT; i++) { most = max(most, tops[leader + i].x); }
    var whole = 0.0;
    for (var i = 0u; i < SPLIT; i++) { whole += tops[leader + i].y * exp(tops[leader + i].x - most); }
    let shrink = exp(top - most);
    let at_y = batch * params.y_batch + head * params.y_head + query * params.y_row;
    $$ for d in range(e4)
    workgroupBarrier();
    parts[local] = sum{{ d }} * shrink;
    workgroupBarrier();
    if ({{ d }}u % SPLIT == own && row < params.queries) {
        var result = vec4<f32>();
        for (var i = 0u; i < SPLIT; i++) { result += parts[leader + i]; }
        $$ if clear_nan
        if (whole > 0.0) { result /= whole; } else { result = vec4<f32>(); }
        $$ else
        result /= whole;
        $$ endif
        $$ if quads
        store4_y(at_y / 4u + {{ d }}u, result);
        $$ else
        for (var i = 0u; i < 4u; i++) { if ({{ 4 * d }}u + i < params.e) { store_y(at_y + {{ 4 * d }}u + i, result[i]); } }
        $$ endif
    }
    $$ endfor
}

// cached_attention: attention over a cache: each row sees the cache's rows up to its own position. A workgroup computes
// one head of a row: its invocations take a key each, then the weights of these keys times values; what is summed so far
// shrinks when a block of keys brings a larger logit.
//
//   q, y    [ROWS, H, D]          place  the first row's position, and how many rows count: y is 0 for others
//   keys    [G, CAPACITY/8, D, 8]          values  [G, CAPACITY, D]; speeds as _turned.wgsl has it
//   alone   the only row's key and value are not in the cache yet: k, v [G, D]; the first head of a group puts them there
//   Needs: D % 4 == 0, D / 4 <= WG.
//   Dispatch: (ROWS * H) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const READERS: u32 = WG;
const LOWEST: f32 = -3.4028234663852886e38;
{$ include "_turned.wgsl" $}
const D4: u32 = D / 4u;
const SLICES: u32 = WG / D4; // of a block's keys: invocations that share a sum of values

{$ include "_exponentials.wgsl" $}
{$ include "_workgroup_reduce.wgsl" $}
{$ include "_each_workgroup.wgsl" $}

var<workgroup> query: array<f32, D>;
var<workgroup> weights: array<f32, WG>;
var<workgroup> parts: array<vec4<f32>, WG>;
$$ if alone
var<workgroup> own_key: array<f32, D>;

fn take_own(group: u32, position: u32, is_first: bool, local: u32) {
    for (var d = local; d < D; d += WG) {
        let pair = pair_of(d);
        let key = turned(load_k(group * D + pair.x), load_k(group * D + pair.y), d, i32(position));
        own_key[d] = key;
        if (is_first) { store_keys(key_at(group, position, d), key); }
        if (is_first && d < D4) { store4_values((group * params.capacity + position) * D4 + d, load4_v(group * D4 + d)); }
    }
}
fn key(group: u32, position: u32, d: u32, own: u32) -> f32 {
    if (position == own) { return own_key[d]; }
    return load_keys(key_at(group, position, d));
}
fn value(group: u32, position: u32, quad: u32, own: u32) -> vec4<f32> {
    if (position == own) { return load4_v(group * D4 + quad); }
    return load4_values((group * params.capacity + position) * D4 + quad);
}
$$ else
fn take_own(group: u32, position: u32, is_first: bool, local: u32) {}
fn key(group: u32, position: u32, d: u32, own: u32) -> f32 { return load_keys(key_at(group, position, d)); }
fn value(group: u32, position: u32, quad: u32, own: u32) -> vec4<f32> {
    return load4_values((group * params.capacity + position) * D4 + quad);
}
$$ endif

fn units() -> u32 { return params.rows * params.heads; }
fn compute(unit: u32, local: u32) {
    let row = unit / params.heads;
    let head = unit % params.heads;
    let group = head / params.share;
    let first = load_place(0u);
    var seen = 0u;
    if (row < counted(first, load_place(1u))) {
        seen = u32(first) + row + 1u;
        for (var d = local; d < D; d += WG) {
            let pair = pair_of(d);
            let left = load_q(unit * D + pair.x);
            query[d] = turned(left, load_q(unit * D + pair.y), d, first + i32(row)) * params.scale;
        }
        take_own(group, seen - 1u, head % params.share == 0u, local);
    }
    workgroupBarrier();
    let quad = local % D4;
    let slice = local / D4;
    var sums = vec4<f32>();
    var top = LOWEST;
    var total = 0.0;
    for (var begin = 0u; begin < seen; begin += WG) {
        let position = begin + local;
        var own = start();
        if (position < seen) {
            var logit = 0.0;
            for (var d = 0u; d < D; d++) { logit += query[d] * key(group, position, d, seen - 1u); }
            own = acc_v(logit, 1.0);
        }
        let all = workgroup_reduce(own, local);
        let most = max(top, all.top);
        let shrink = exp(top - most);
        total = total * shrink + all.sum * exp(all.top - most);
        top = most;
        weights[local] = own.sum * exp(own.top - most);
        workgroupBarrier();
        sums *= shrink;
        if (slice < SLICES) {
            for (var j = slice; j < min(WG, seen - begin); j += SLICES) {
                sums += weights[j] * value(group, begin + j, quad, seen - 1u);
            }
        }
        workgroupBarrier();
    }
    parts[local] = sums;
    workgroupBarrier();
    if (local < D4) {
        var result = vec4<f32>();
        for (var i = 0u; i < SLICES; i++) { result += parts[i * D4 + local]; }
        store4_y(unit * D4 + local, select(vec4<f32>(), result / total, seen > 0u));
    }
}

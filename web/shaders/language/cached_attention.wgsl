// cached_attention: attention of one row over a cache that it joins. A workgroup computes one head: its invocations take a
// key each, then the weights of these keys times values; what is summed so far shrinks when a block of keys brings a
// larger logit.
//
//   qkv     [H*D + G*D + G*D] if joined, else q [H, D] and k, v [G, D]          y [H, D]
//   place   the row's position, and whether it counts: else y is 0
//   keys    [G, CAPACITY/8, D, 8]          values  [G, CAPACITY, D]; speeds as _turned.wgsl has it
//   The row's key and value are not in the cache yet: the first head of a group puts them there.
//   Needs: D % 4 == 0, D / 4 <= WG.
//   Dispatch: (H) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const READERS: u32 = WG;
const LOWEST: f32 = -3.4028234663852886e38;
{$ include "_turned.wgsl" $}
{$ include "_heads.wgsl" $}
const D4: u32 = D / 4u;
const SLICES: u32 = WG / D4; // of a block's keys: invocations that share a sum of values
$$ set quads = 4 if width % 16 == 0 else 1
const AT_ONCE: u32 = {{ 4 * quads }}u; // elements of a key that are on their way at a time

{$ include "_exponentials.wgsl" $}
{$ include "_workgroup_reduce.wgsl" $}
{$ include "_each_workgroup.wgsl" $}

var<workgroup> both: array<f32, 2 * D>; // the query, then the row's own key, turned
var<workgroup> turns: array<vec4<f32>, 2 * D4>; // the same in quads
var<workgroup> weights: array<f32, WG>;
var<workgroup> parts: array<vec4<f32>, WG>;

fn own_value(group: u32, quad: u32) -> vec4<f32> {
    let at = group * D + 4u * quad;
    return vec4<f32>(value_of(0u, at), value_of(0u, at + 1u), value_of(0u, at + 2u), value_of(0u, at + 3u));
}

fn units() -> u32 { return params.heads; }
fn compute(head: u32, local: u32) {
    let group = head / params.share;
    let position = load_place(0u);
    let seen = select(0u, u32(position) + 1u, counted(position, load_place(1u)) > 0u);
    let cached = max(seen, 1u) - 1u;
    let is_first = head % params.share == 0u;
    if (seen > 0u) {
        // An invocation turns an element of the query or of the key.
        for (var i = local; i < 2u * D; i += WG) {
            let of_query = i < D;
            let d = i % D;
            let at = select(group, head, of_query) * D;
            let pair = pair_of(d);
            var left = 0.0;
            var right = 0.0;
            if (of_query) {
                left = query_of(0u, at + pair.x);
                right = query_of(0u, at + pair.y);
            } else {
                left = key_of(0u, at + pair.x);
                right = key_of(0u, at + pair.y);
            }
            let v = turned(left, right, d, position);
            both[i] = select(v, v * params.scale, of_query);
            if (!of_query && is_first) { store_keys(key_at(group, cached, d), v); }
        }
    }
    workgroupBarrier();
    for (var i = local; i < 2u * D4; i += WG) {
        turns[i] = vec4<f32>(both[4u * i], both[4u * i + 1u], both[4u * i + 2u], both[4u * i + 3u]);
    }
    if (is_first && seen > 0u && local < D4) {
        store4_values((group * params.capacity + cached) * D4 + local, own_value(group, local));
    }
    workgroupBarrier();
    let quad = local % D4;
    let slice = local / D4;
    var sums = vec4<f32>();
    var top = LOWEST;
    var total = 0.0;
    for (var begin = 0u; begin < seen; begin += WG) {
        let key = begin + local;
        var own = start();
        if (key < cached) {
            // Several loads on their way at a time: a key's elements lie eight apart.
            let at = key_at(group, key, 0u);
            var logit = vec4<f32>();
            for (var d = 0u; d < D; d += AT_ONCE) {
                $$ for u in range(quads)
                logit += turns[d / 4u + {{ u }}u] * vec4<f32>(
                    load_keys(at + 8u * d + {{ 32 * u }}u), load_keys(at + 8u * d + {{ 32 * u + 8 }}u),
                    load_keys(at + 8u * d + {{ 32 * u + 16 }}u), load_keys(at + 8u * d + {{ 32 * u + 24 }}u),
                );
                $$ endfor
            }
            own = acc_v(dot(logit, vec4<f32>(1.0)), 1.0);
        } else if (key == cached) {
            var logit = 0.0;
            for (var i = 0u; i < D4; i++) { logit += dot(turns[i], turns[D4 + i]); }
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
        let last = min(begin + WG, cached);
        if (slice < SLICES && begin < last) {
            for (var j = begin + slice; j < last; j += 4u * SLICES) {
                $$ for u in range(4)
                {
                    let at = min(j + {{ u }}u * SLICES, last - 1u);
                    let weight = select(0.0, weights[at - begin], j + {{ u }}u * SLICES < last);
                    sums += weight * load4_values((group * params.capacity + at) * D4 + quad);
                }
                $$ endfor
            }
        }
        if (slice == 0u && cached >= begin && cached < begin + WG) {
            sums += weights[cached - begin] * own_value(group, quad);
        }
        workgroupBarrier();
    }
    parts[local] = sums;
    workgroupBarrier();
    if (local < D4) {
        var result = vec4<f32>();
        for (var i = 0u; i < SLICES; i++) { result += parts[i * D4 + local]; }
        store4_y(head * D4 + local, select(vec4<f32>(), result / total, seen > 0u));
    }
}

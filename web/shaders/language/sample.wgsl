// sample: one number drawn from a row of logits by one workgroup, with weights exp(x / temperature).
//
//   x        [N]          y  [2]: the place of the logit that was drawn, and of the largest; of equal ones the first
//   options  temperature (0 or less: the largest logit), how many of the largest count (0: all), what share of their
//            weight counts (the largest up to there, one at least), and the draw, 0 to 1
//   Logits are never sorted: a bound such as "as many as k are not below it" is found bit by bit. rank() grows with a
//   logit; above(bound) is the weight and the number of the logits whose rank is at least the bound.
//   Dispatch: one workgroup

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const READERS: u32 = WG;
// that the last place has
const PLACE_BITS: u32 = {{ place_bits }}u;

alias acc_v = vec2<f32>;
{$ include "_sum.wgsl" $}
{$ include "_workgroup_reduce.wgsl" $}
{$ include "_best.wgsl" $}

fn rank(v: f32) -> u32 {
    let bits = select(bitcast<u32>(v), 0u, v == 0.0);
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}
fn logit_of(bound: u32) -> f32 {
    return bitcast<f32>(select(~bound, bound & 0x7fffffffu, bound >= 0x80000000u));
}
fn weight(v: f32, best: f32) -> f32 { return exp((v - best) / load_options(0u)); }

fn above(bound: u32, best: f32, local: u32) -> acc_v {
    var own = acc_v();
    for (var i = local; i < params.n; i += WG) {
        let v = load_x(i);
        if (rank(v) >= bound) { own += acc_v(weight(v, best), 1.0); }
    }
    workgroupBarrier();
    return workgroup_reduce(own, local);
}

// Of the logits whose rank is `bound` the one that `before` others come before.
fn place_of(bound: u32, before: f32, local: u32) -> u32 {
    var place = 0u;
    for (var bit = 1u << PLACE_BITS; bit > 0u; bit /= 2u) {
        var own = acc_v();
        for (var i = local; i < min(place + bit, params.n); i += WG) {
            if (rank(load_x(i)) == bound) { own.y += 1.0; }
        }
        workgroupBarrier();
        if (workgroup_reduce(own, local).y <= before) { place += bit; }
    }
    return place;
}

// The largest bound above which there are `many` logits or the weight `mass`, strictly more of it with `strictly`.
fn bound_of(many: f32, mass: f32, strictly: bool, best: f32, local: u32) -> u32 {
    var bound = 0u;
    for (var bit = 0x80000000u; bit > 0u; bit /= 2u) {
        let all = above(bound | bit, best, local);
        if (all.y >= many && (all.x > mass || (all.x == mass && !strictly))) { bound |= bit; }
    }
    return min(bound, rank(best));
}

fn drawn(best: f32, least: f32, local: u32) -> u32 {
    let n = f32(params.n);
    // `last` is the rank of the last logit that counts, `ties` how many of that rank do, `kept` the weight of all.
    var last = rank(least);
    var ties = n;
    var kept = above(0u, best, local).x;
    let most = floor(load_options(1u));
    if (most >= 1.0 && most < n) {
        last = bound_of(most, -1.0, true, best, local);
        let before = above(last + 1u, best, local);
        ties = most - before.y;
        kept = before.x + ties * weight(logit_of(last), best);
    }
    if (load_options(2u) < 1.0) {
        let wanted = load_options(2u) * kept;
        let bound = max(bound_of(0.0, wanted, false, best, local), last);
        let before = above(bound + 1u, best, local);
        let equal = above(bound, best, local).y - before.y;
        let each = weight(logit_of(bound), best);
        ties = clamp(ceil((wanted - before.x) / each), 1.0, select(equal, min(equal, ties), bound == last));
        last = bound;
        kept = before.x + ties * each;
    }
    let wanted = load_options(3u) * kept;
    let bound = max(bound_of(0.0, wanted, true, best, local), last);
    let before = above(bound + 1u, best, local);
    let equal = above(bound, best, local).y - before.y;
    let skipped = floor((wanted - before.x) / weight(logit_of(bound), best));
    return place_of(bound, clamp(skipped, 0.0, select(equal, min(equal, ties), bound == last) - 1.0), local);
}

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) local: u32) {
    let first = min(local, params.n - 1u);
    var own = Candidate(load_x(first), first);
    var other = Candidate(-load_x(first), first); // the least
    for (var i = local; i < params.n; i += WG) {
        let v = load_x(i);
        if (v > own.score) { own = Candidate(v, i); }
        if (-v > other.score) { other = Candidate(-v, i); }
    }
    let best = best_of(own, local);
    let least = -best_of(other, local).score;
    var place = best.place;
    if (load_options(0u) > 0.0) { place = drawn(best.score, least, local); }
    if (local == 0u) {
        store_y(0u, i32(min(place, params.n - 1u)));
        store_y(1u, i32(best.place));
    }
}

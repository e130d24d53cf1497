// nms: non-maximum suppression of boxes, hard or soft; a workgroup does all of it for one list of their scores.
//
//   boxes [N, 4] two opposite corners (y, x) in any order; scores [lists, N]; work [lists, N] scratch: scores as they sink
//   positions, kept [lists, LIMIT]  the boxes that are kept and their scores, best first, zeros behind the last; count [lists]
//   Of equal scores the first box wins. `sigma` is 0 where boxes are only dropped.
//   Dispatch: (lists) workgroups
//   Source: tensorflow v2.18.0, lite/kernels/internal/reference/non_max_suppression.h

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const GONE: f32 = -3.4028234663852886e38;
{$ include "_best.wgsl" $}

// top, left, bottom, right
fn corners(i: u32) -> vec4<f32> {
    let box = load4_boxes(i);
    return vec4<f32>(min(box.xy, box.zw), max(box.xy, box.zw));
}

fn intersection_over_union(a: vec4<f32>, b: vec4<f32>) -> f32 {
    let size_a = a.zw - a.xy;
    let size_b = b.zw - b.xy;
    let both = max(min(a.zw, b.zw) - max(a.xy, b.xy), vec2<f32>(0.0));
    let area_a = size_a.x * size_a.y;
    let area_b = size_b.x * size_b.y;
    if (area_a <= 0.0 || area_b <= 0.0) { return 0.0; }
    return both.x * both.y / (area_a + area_b - both.x * both.y);
}

// The score of box i once `winner` is kept.
fn sunk(score: f32, i: u32, winner: vec4<f32>) -> f32 {
    let both = intersection_over_union(winner, corners(i));
    if (both >= params.overlap) { return GONE; }
    if (params.sigma == 0.0) { return score; }
    let left = score * exp(-0.5 / params.sigma * both * both);
    return select(GONE, left, left > params.least);
}

// Each invocation looks at its own boxes only.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let first = group.x * params.n;
    let to = group.x * params.limit;
    for (var i = local; i < params.n; i += WG) {
        let score = load_scores(first + i);
        store_work(first + i, select(GONE, score, score > params.least));
    }
    var found = 0u;
    while (found < params.limit) {
        var top = Candidate(GONE, 0u);
        for (var i = local; i < params.n; i += WG) {
            let score = load_work(first + i);
            if (score > top.score) { top = Candidate(score, i); }
        }
        let winner = best_of(top, local);
        if (winner.score <= GONE) { break; }
        if (local == 0u) {
            store_positions(to + found, i32(winner.place));
            store_kept(to + found, winner.score);
        }
        found++;
        if (found == params.limit) { break; } // nobody looks at the scores again
        let box = corners(winner.place);
        for (var i = local; i < params.n; i += WG) {
            let own = load_work(first + i);
            if (i == winner.place) { store_work(first + i, GONE); } else if (own > GONE) { store_work(first + i, sunk(own, i, box)); }
        }
    }
    for (var k = found + local; k < params.limit; k += WG) {
        store_positions(to + k, 0);
        store_kept(to + k, 0.0);
    }
    if (local == 0u) { store_count(group.x, i32(found)); }
}

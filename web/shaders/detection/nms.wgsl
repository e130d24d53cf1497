// nms: non-maximum suppression of one list of boxes, hard or soft; a workgroup does all of it.
//
//   boxes [N, 4] two opposite corners (y, x) in any order; scores [N]; work [N] scratch: scores as they sink
//   positions, kept [LIMIT]  the boxes that are kept and their scores, best first, zeros behind the last; count [1]
//   Of equal scores the first box wins. `sigma` is 0 where boxes are only dropped.
//   Dispatch: one workgroup
//   Source: tensorflow v2.18.0, lite/kernels/internal/reference/non_max_suppression.h

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const GONE: f32 = -3.4028234663852886e38;
var<workgroup> best: array<f32, WG>;
var<workgroup> place: array<u32, WG>;

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

// Each invocation looks at its own boxes only; the best of all is found in a tree.
@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) local: u32) {
    for (var i = local; i < params.n; i += WG) {
        let score = load_scores(i);
        store_work(i, select(GONE, score, score > params.least));
    }
    var found = 0u;
    for (var k = 0u; k < params.limit; k++) {
        var top = GONE;
        var at = 0u;
        for (var i = local; i < params.n; i += WG) {
            let score = load_work(i);
            if (score > top) {
                top = score;
                at = i;
            }
        }
        best[local] = top;
        place[local] = at;
        workgroupBarrier();
        for (var step = WG / 2u; step > 0u; step /= 2u) {
            if (local < step) {
                let other = best[local + step];
                if (other > best[local] || (other == best[local] && place[local + step] < place[local])) {
                    best[local] = other;
                    place[local] = place[local + step];
                }
            }
            workgroupBarrier();
        }
        let score = best[0];
        let winner = place[0];
        let is_found = score > GONE;
        if (local == 0u) {
            store_positions(k, select(0, i32(winner), is_found));
            store_kept(k, select(0.0, score, is_found));
            found += select(0u, 1u, is_found);
        }
        let box = corners(winner);
        for (var i = local; i < params.n; i += WG) {
            let own = load_work(i);
            if (i == winner) { store_work(i, GONE); } else if (own > GONE) { store_work(i, sunk(own, i, box)); }
        }
        workgroupBarrier();
    }
    if (local == 0u) { store_count(0u, i32(found)); }
}

// ssd_detections: what a single-shot detector found: scores above a threshold, overlapping boxes averaged by score.
//
//   boxes [A, RAW] in pixels from the anchors, scores [A] bits of logits, asked [1] threshold,
//   y [MOST, RAW + 1] corners, keypoints, score; best first, zero behind the last
//   One workgroup. An invocation looks after the anchors local, local + WG, ...; bit n of `open` stands for its n-th.
//   Sums run in the order of the anchors. Whatever the numbers are, every loop ends.
//   Needs: A <= 32 * WG.
//   Dispatch: (1)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const RAW: u32 = {{ raw }}u;
const WORDS: u32 = {{ words }}u;
const NEVER: f32 = -1.0;
{$ include "_math.wgsl" $}
{$ include "_best.wgsl" $}

var<workgroup> merged: array<atomic<u32>, WORDS>; // a bit an anchor

fn score_of(i: u32) -> f32 {
    let bits = load_scores(i);
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return NEVER; } // NaN, which comparisons of floats may miss
    return sigmoid(vec4<f32>(clamp(bitcast<f32>(bits), -params.score_clip, params.score_clip))).x;
}

fn centre_of(i: u32) -> vec2<f32> {
    var layer = 0u;
    for (var l = 1u; l < params.layers; l++) { if (i >= first_at(l)) { layer = l; } }
    let cells = cells_at(layer);
    let cell = (i - first_at(layer)) / per_cell_at(layer);
    return (vec2<f32>(f32(cell % cells), f32(cell / cells)) + 0.5) / f32(cells);
}

fn corners_of(i: u32) -> vec4<f32> {
    let at = i * RAW;
    let middle = vec2<f32>(load_boxes(at), load_boxes(at + 1u)) * params.inverse + centre_of(i);
    let half = vec2<f32>(load_boxes(at + 2u), load_boxes(at + 3u)) * params.inverse * 0.5;
    return vec4<f32>(middle - half, middle + half);
}

fn coordinate(i: u32, k: u32) -> f32 {
    if (k < 4u) { return corners_of(i)[k]; }
    return load_boxes(i * RAW + k) * params.inverse + centre_of(i)[k & 1u];
}

fn overlap(a: vec4<f32>, b: vec4<f32>) -> f32 {
    let sides = min(a.zw, b.zw) - max(a.xy, b.xy);
    if (sides.x <= 0.0 || sides.y <= 0.0) { return 0.0; }
    let both = sides.x * sides.y;
    let either = (a.z - a.x) * (a.w - a.y) + (b.z - b.x) * (b.w - b.y) - both;
    if (either <= 0.0) { return 0.0; }
    return both / either;
}

// Coordinate k of the merged anchors and of the best one, averaged by score.
fn mean(best: u32, k: u32) -> f32 {
    var sum = 0.0;
    var total = 0.0;
    for (var word = 0u; word < WORDS; word++) {
        for (var left = atomicLoad(&merged[word]); left != 0u; left &= left - 1u) {
            let i = 32u * word + firstTrailingBit(left);
            let score = score_of(i);
            sum += score * coordinate(i, k);
            total += score;
        }
    }
    let score = score_of(best);
    let own = coordinate(best, k);
    total += score;
    if (total <= 0.0) { return own; }
    return (sum + score * own) / total;
}

// The best of all invocations' anchors that are left, the first of equals; params.anchors if there is none.
fn find_best(local: u32, open: u32) -> u32 {
    var top = Candidate(NEVER, params.anchors);
    for (var left = open; left != 0u; left &= left - 1u) {
        let i = local + firstTrailingBit(left) * WG;
        let score = score_of(i);
        if (score > top.score) { top = Candidate(score, i); }
    }
    return best_of(top, local).place;
}

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) local: u32) {
    let asked = load_asked(0u);
    let least = select(params.min_score, asked, asked > 0.0);
    var open = 0u;
    for (var n = 0u; local + n * WG < params.anchors; n++) {
        if (score_of(local + n * WG) >= least) { open |= 1u << n; }
    }
    var found = 0u;
    for (; found < params.most; found++) {
        for (var word = local; word < WORDS; word += WG) { atomicStore(&merged[word], 0u); }
        let best = find_best(local, open);
        if (best >= params.anchors) { break; }
        let winner = corners_of(best);
        for (var left = open; left != 0u; left &= left - 1u) {
            let n = firstTrailingBit(left);
            let i = local + n * WG;
            let overlaps = overlap(winner, corners_of(i)) > params.suppression;
            if (overlaps && i != best) { atomicOr(&merged[i >> 5u], 1u << (i & 31u)); }
            if (overlaps || i == best) { open &= ~(1u << n); }
        }
        workgroupBarrier();
        for (var k = local; k < RAW; k += WG) { store_y(found * (RAW + 1u) + k, mean(best, k)); }
        if (local == 0u) { store_y(found * (RAW + 1u) + RAW, score_of(best)); }
        workgroupBarrier();
    }
    for (var i = found * (RAW + 1u) + local; i < params.most * (RAW + 1u); i += WG) { store_y(i, 0.0); }
}

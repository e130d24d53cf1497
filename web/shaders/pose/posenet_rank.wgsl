// posenet_rank: orders the poses by score, takes off keypoints that a better pose has nearby, writes the results.
//
//   poses      records of _posenet
//   keypoints [D, 17, 2] in image pixels, scores [D, 17], pose_scores [D], found [1]; zero beyond the poses kept
//   Dispatch: (1); one invocation does it all

{{ prelude }}
{$ include "_posenet.wgsl" $}

// Poses better than r by score, or equal and found before.
fn rank_of(r: u32, count: u32) -> u32 {
    var rank = 0u;
    for (var other = 0u; other < count; other++) {
        let ahead = load_poses(record_at(other)) - load_poses(record_at(r));
        if (ahead > 0.0 || (ahead == 0.0 && other < r)) { rank += 1u; }
    }
    return rank;
}

// The mean score of r over the keypoints that no better pose has nearby.
fn visible_score(r: u32, count: u32) -> f32 {
    let rank = rank_of(r, count);
    var total = 0.0;
    for (var k = 0u; k < KEYPOINTS; k++) {
        var hidden = false;
        for (var other = 0u; other < count; other++) {
            if (rank_of(other, count) < rank && near(point_of(r, k), point_of(other, k))) { hidden = true; }
        }
        if (!hidden) { total += load_poses(score_at(r, k)); }
    }
    return total / f32(KEYPOINTS);
}

fn clear() {
    for (var d = 0u; d < params.max_detections; d++) {
        store_pose_scores(d, 0.0);
        for (var k = 0u; k < KEYPOINTS; k++) {
            store_scores(d * KEYPOINTS + k, 0.0);
            store_keypoints(2u * (d * KEYPOINTS + k), 0.0);
            store_keypoints(2u * (d * KEYPOINTS + k) + 1u, 0.0);
        }
    }
}

@compute @workgroup_size(1)
fn main() {
    clear();
    let count = u32(load_poses(0u));
    var kept = 0u;
    var last = 3.0e38;
    var last_rank = 0u;
    // Each round takes the best visible score that is not better than the last one taken.
    for (var round = 0u; round < count; round++) {
        var best = -1.0;
        var best_rank = count;
        var at = count;
        for (var r = 0u; r < count; r++) {
            let score = visible_score(r, count);
            let rank = rank_of(r, count);
            let open = score < last || (score == last && rank > last_rank);
            if (open && (score > best || (score == best && rank < best_rank))) {
                best = score;
                best_rank = rank;
                at = r;
            }
        }
        if (at == count || best < params.threshold) { break; }
        last = best;
        last_rank = best_rank;
        store_pose_scores(kept, best);
        for (var k = 0u; k < KEYPOINTS; k++) {
            store_scores(kept * KEYPOINTS + k, load_poses(score_at(at, k)));
            let p = point_of(at, k) * params.stride;
            store_keypoints(2u * (kept * KEYPOINTS + k), p.x);
            store_keypoints(2u * (kept * KEYPOINTS + k) + 1u, p.y);
        }
        kept += 1u;
    }
    store4_found(0u, vec4<f32>(f32(kept), 0.0, 0.0, 0.0));
}

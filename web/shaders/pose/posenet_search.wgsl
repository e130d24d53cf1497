// posenet_search: finds poses: takes the candidates best first and walks the skeleton from each that is new.
//
//   candidates [H, W, 17] heat of local maxima or LOWEST; heat [H, W, 17], short [H, W, 34], middle [H, W, 64]
//   poses   records of _posenet, in the order they are found
//   One workgroup: all invocations look for the next candidate, the first one walks.
//   Source: the order and the rounding of backends/reference/pose.py
//   Dispatch: (1)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const LOWEST: f32 = -3.4028234663852886e38;
const EDGES: u32 = {{ edges }}u;
const REFINEMENTS: u32 = 5u;
{$ include "_posenet.wgsl" $}
{$ include "_posenet_sample.wgsl" $}

// (parent, child) of the 16 edges, then the same backwards.
var<private> skeleton: array<vec2<u32>, 32> = array<vec2<u32>, 32>(
    vec2(0u, 1u), vec2(1u, 3u), vec2(0u, 2u), vec2(2u, 4u), vec2(0u, 5u), vec2(5u, 7u), vec2(7u, 9u), vec2(5u, 11u),
    vec2(11u, 13u), vec2(13u, 15u), vec2(0u, 6u), vec2(6u, 8u), vec2(8u, 10u), vec2(6u, 12u), vec2(12u, 14u), vec2(14u, 16u),
    vec2(1u, 0u), vec2(3u, 1u), vec2(2u, 0u), vec2(4u, 2u), vec2(5u, 0u), vec2(7u, 5u), vec2(9u, 7u), vec2(11u, 5u),
    vec2(13u, 11u), vec2(15u, 13u), vec2(6u, 0u), vec2(8u, 6u), vec2(10u, 8u), vec2(12u, 6u), vec2(14u, 12u), vec2(16u, 14u),
);
{$ include "_best.wgsl" $}
var<workgroup> found: u32;

fn heat_at(p: vec2<f32>, k: u32) -> f32 {
    let c = cell_of(p);
    let taps = vec4<f32>(
        load_heat(c.top_left * KEYPOINTS + k), load_heat(c.top_right * KEYPOINTS + k),
        load_heat(c.bottom_left * KEYPOINTS + k), load_heat(c.bottom_right * KEYPOINTS + k),
    );
    return dot(taps, c.weights);
}

fn moved_short(p: vec2<f32>, k: u32) -> vec2<f32> {
    let c = cell_of(p);
    let at = vec4<u32>(c.top_left, c.top_right, c.bottom_left, c.bottom_right) * 2u * KEYPOINTS + k;
    let down = vec4<f32>(load_short(at.x), load_short(at.y), load_short(at.z), load_short(at.w));
    let far = at + KEYPOINTS;
    let across = vec4<f32>(load_short(far.x), load_short(far.y), load_short(far.z), load_short(far.w));
    return clamp_point(p + vec2<f32>(dot(down, c.weights), dot(across, c.weights)) * params.cell);
}

fn moved_middle(p: vec2<f32>, edge: u32) -> vec2<f32> {
    // posenet_decoder.cc moves only edges above 16 by one block.
    let channel = select(edge, edge + EDGES, edge > EDGES);
    let c = cell_of(p);
    let at = vec4<u32>(c.top_left, c.top_right, c.bottom_left, c.bottom_right) * 4u * EDGES + channel;
    let down = vec4<f32>(load_middle(at.x), load_middle(at.y), load_middle(at.z), load_middle(at.w));
    let far = at + EDGES;
    let across = vec4<f32>(load_middle(far.x), load_middle(far.y), load_middle(far.z), load_middle(far.w));
    return clamp_point(p + vec2<f32>(dot(down, c.weights), dot(across, c.weights)) * params.cell);
}

// Walks the skeleton from keypoint k at `root`, always along the best edge, and writes record r.
fn decode(r: u32, root: vec2<f32>, k: u32) {
    var heats: array<f32, 33>;
    var points: array<vec2<f32>, 33>;
    var names: array<u32, 33>;
    var waiting: array<bool, 33>;
    var done: array<bool, 17>;
    heats[0] = heat_at(root, k);
    points[0] = root;
    names[0] = k;
    waiting[0] = true;
    var count = 1u;
    var total = 0.0;
    loop {
        var top = 33u;
        for (var i = 0u; i < count; i++) {
            if (!waiting[i] || done[names[i]]) { continue; }
            if (top == 33u) { top = i; } else if (heats[i] > heats[top]) { top = i; }
        }
        if (top == 33u) { break; }
        waiting[top] = false;
        let own = names[top];
        let p = points[top];
        done[own] = true;
        let score = 1.0 / (1.0 + exp(-heats[top]));
        total += score;
        store_poses(score_at(r, own), score);
        store_poses(point_at(r, own), p.x);
        store_poses(point_at(r, own) + 1u, p.y);
        for (var edge = 0u; edge < 2u * EDGES; edge++) {
            let child = skeleton[edge].y;
            if (skeleton[edge].x != own || done[child]) { continue; }
            var at = moved_middle(p, edge);
            for (var i = 0u; i < REFINEMENTS; i++) { at = moved_short(at, child); }
            heats[count] = heat_at(at, child);
            points[count] = at;
            names[count] = child;
            waiting[count] = true;
            count += 1u;
        }
    }
    store_poses(record_at(r), total / f32(KEYPOINTS));
}

// Takes one candidate: a new pose unless a known one has this keypoint nearby or its score is too low.
fn take(place: u32, count: u32) -> u32 {
    let k = place % KEYPOINTS;
    let cell = place / KEYPOINTS;
    let offset = vec2<f32>(load_short(cell * 2u * KEYPOINTS + k), load_short((cell * 2u + 1u) * KEYPOINTS + k));
    let root = clamp_point(vec2<f32>(f32(cell / params.w), f32(cell % params.w)) + offset * params.cell);
    for (var r = 0u; r < count; r++) {
        if (near(root, point_of(r, k))) { return count; }
    }
    decode(count, root, k);
    return select(count, count + 1u, load_poses(record_at(count)) >= params.threshold);
}

// The best candidate of this invocation's share behind `last` in the order best first, then first first.
fn look(local: u32, last: Candidate) -> Candidate {
    var top = Candidate(LOWEST, params.count);
    for (var i = local; i < params.count; i += WG) {
        let v = load_candidates(i);
        let behind = v < last.score || (v == last.score && i > last.place);
        if (v > LOWEST && behind && v > top.score) { top = Candidate(v, i); }
    }
    return top;
}

@compute @workgroup_size(WG)
fn main(@builtin(local_invocation_index) local: u32) {
    var best = Candidate(-LOWEST, 0u);
    if (local == 0u) { found = 0u; }
    loop {
        best = best_of(look(local, best), local);
        if (best.place >= params.count) { break; }
        if (local == 0u) { found = take(best.place, found); }
        let enough = workgroupUniformLoad(&found);
        if (enough >= params.max_detections) { break; }
    }
    if (local == 0u) { store_poses(0u, f32(found)); }
}

// detection_list: the boxes that a suppression has kept, best first, zeros behind the last.
//
//   positions, kept [LIMIT], count [1] of nms; boxes [N, 4], kinds [N]
//   y [LIMIT, 4]; labels, scores [LIMIT]
//   Dispatch: (LIMIT / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let k = gid.x + gid.y * groups.x * WG;
    if (k >= params.limit) { return; }
    let count = u32(load_count(0u));
    let place = u32(load_positions(k));
    let is_found = k < count;
    store4_y(k, select(vec4<f32>(0.0), load4_boxes(place), is_found));
    store_labels(k, select(0.0, load_kinds(place), is_found));
    store_scores(k, select(0.0, load_kept(k), is_found));
}

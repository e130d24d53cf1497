// detection_decode: boxes from anchors, and the best class of each.
//
//   raw [N, RAW] centre y, x, height, width in the scale of the anchor; anchors [N, 4] the same in 0..1
//   scores [N, COLUMNS], of which those from FIRST on are read
//   boxes [N, 4] top, left, bottom, right; judged, kinds [N] the best class's score and number, the first of equals
//   Dispatch: (N / WG)
//   Source: tensorflow v2.18.0, lite/kernels/detection_postprocess.cc

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let i = gid.x + gid.y * groups.x * WG;
    if (i >= params.n) { return; }
    let at = i * params.raw_width;
    let anchor = load4_anchors(i);
    let moved = vec2<f32>(load_raw(at) / params.scale_y, load_raw(at + 1u) / params.scale_x);
    let grown = vec2<f32>(load_raw(at + 2u) / params.scale_height, load_raw(at + 3u) / params.scale_width);
    let middle = moved * anchor.zw + anchor.xy;
    let reach = 0.5 * exp(grown) * anchor.zw;
    store4_boxes(i, vec4<f32>(middle - reach, middle + reach));
    let first = i * params.columns + params.first;
    var best = load_scores(first);
    var kind = 0u;
    for (var c = 1u; c < params.classes; c++) {
        let score = load_scores(first + c);
        if (score > best) {
            best = score;
            kind = c;
        }
    }
    store_judged(i, best);
    store_kinds(i, f32(kind));
}

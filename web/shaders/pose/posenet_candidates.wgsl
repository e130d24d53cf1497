// posenet_candidates: the heat of every local maximum of 3x3 cells that may start a pose, else LOWEST.
//
//   x [H, W, 17] logits, y [H, W, 17]; four consecutive elements of y an invocation
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const KEYPOINTS: u32 = {{ keypoints }}u;
const LOWEST: f32 = -3.4028234663852886e38;

fn element(i: u32) -> y_t {
    let k = i % KEYPOINTS;
    let x = (i / KEYPOINTS) % params.w;
    let y = i / (KEYPOINTS * params.w);
    let heat = load_x(i);
    if (heat < params.least) { return LOWEST; }
    for (var ny = max(y, 1u) - 1u; ny < min(y + 2u, params.h); ny++) {
        for (var nx = max(x, 1u) - 1u; nx < min(x + 2u, params.w); nx++) {
            if (load_x((ny * params.w + nx) * KEYPOINTS + k) > heat) { return LOWEST; }
        }
    }
    return heat;
}

{$ include "_each_element.wgsl" $}

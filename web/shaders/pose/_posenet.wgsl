// _posenet: records of the poses found so far. Points are (y, x) in heat-map cells.
//
//   record r of `poses`: score, 17 keypoint scores, 17 points; element 0 of all is the count of records
//   Needs: a binding poses, params.squared_radius.

const KEYPOINTS: u32 = {{ keypoints }}u;
const RECORD: u32 = {{ record }}u;

fn record_at(r: u32) -> u32 { return 1u + r * RECORD; }
fn score_at(r: u32, k: u32) -> u32 { return record_at(r) + 1u + k; }
fn point_at(r: u32, k: u32) -> u32 { return record_at(r) + 18u + 2u * k; }
fn point_of(r: u32, k: u32) -> vec2<f32> {
    return vec2<f32>(load_poses(point_at(r, k)), load_poses(point_at(r, k) + 1u));
}
fn near(a: vec2<f32>, b: vec2<f32>) -> bool { return dot(b - a, b - a) <= params.squared_radius; }

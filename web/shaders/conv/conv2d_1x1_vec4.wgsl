// conv2d_1x1_vec4: a matrix product; one invocation computes TILE rows by four columns.
//
//   x  [rows, CI]             read four channels at a time
//   w  [CI, ceil(CO/4)]       vec4 of output channels, packed at load, zeros behind CO
//   y  [rows, CO]             written in quads, or one by one if CO % 4 != 0
//   Needs: CI % 4 == 0, stride 1, no padding, one group.
//   Dispatch: (ceil(rows/TILE) * ceil(CO/4) / WG), neighbours share their rows

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const TILE: u32 = {{ tile }}u;
{$ include "_epilogue.wgsl" $}
{$ include "_put.wgsl" $}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let c4 = index % params.co4;
    let first = (index / params.co4) * TILE;
    if (first >= params.pixels) { return; }

    var at: array<u32, TILE>;
    var sum: array<w_v, TILE>;
    for (var t = 0u; t < TILE; t++) {
        at[t] = min(first + t, params.pixels - 1u) * params.ci4;
        sum[t] = w_v();
    }
    var tap = c4;
    for (var k = 0u; k < params.ci4; k++) {
        let w0 = load4_w(tap);
        let w1 = load4_w(tap + params.co4);
        let w2 = load4_w(tap + 2u * params.co4);
        let w3 = load4_w(tap + 3u * params.co4);
        tap += 4u * params.co4;
        for (var t = 0u; t < TILE; t++) {
            let v = input4(at[t] + k);
            sum[t] += v.x * w0 + v.y * w1 + v.z * w2 + v.w * w3;
        }
    }
    for (var t = 0u; t < TILE; t++) { put(first + t, c4, sum[t]); }
}

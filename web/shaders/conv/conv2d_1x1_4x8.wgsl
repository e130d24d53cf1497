// conv2d_1x1_4x8: a matrix product; one invocation computes four rows by eight columns in registers.
//
//   x  [rows, CI]             read four channels at a time
//   w  [CI, ceil(CO/4)]       vec4 of output channels, packed at load, zeros behind CO
//   y  [rows, CO]             written in quads
//   Needs: CI % 4 == 0, CO % 8 == 0, stride 1, no padding, one group.
//   Dispatch: (ceil(rows/4) * CO/8 / WG), neighbours share their rows

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_epilogue.wgsl" $}

fn put(row: u32, c4: u32, left: w_v, right: w_v) {
    if (row >= params.pixels) { return; }
    store4_y(row * params.co4 + c4, finish(left, row, c4));
    store4_y(row * params.co4 + c4 + 1u, finish(right, row, c4 + 1u));
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let columns = params.co4 / 2u;
    let c4 = index % columns * 2u;
    let first = index / columns * 4u;
    if (first >= params.pixels) { return; }

    let last = params.pixels - 1u;
    let row0 = first * params.ci4;
    let row1 = min(first + 1u, last) * params.ci4;
    let row2 = min(first + 2u, last) * params.ci4;
    let row3 = min(first + 3u, last) * params.ci4;
    var a0 = w_v(); var a1 = w_v(); var a2 = w_v(); var a3 = w_v();
    var b0 = w_v(); var b1 = w_v(); var b2 = w_v(); var b3 = w_v();
    var tap = c4;
    for (var k = 0u; k < params.ci4; k++) {
        let x0 = input4(row0 + k);
        let x1 = input4(row1 + k);
        let x2 = input4(row2 + k);
        let x3 = input4(row3 + k);
        var p = load4_w(tap);
        var q = load4_w(tap + 1u);
        a0 += x0.x * p; a1 += x1.x * p; a2 += x2.x * p; a3 += x3.x * p;
        b0 += x0.x * q; b1 += x1.x * q; b2 += x2.x * q; b3 += x3.x * q;
        tap += params.co4;
        p = load4_w(tap);
        q = load4_w(tap + 1u);
        a0 += x0.y * p; a1 += x1.y * p; a2 += x2.y * p; a3 += x3.y * p;
        b0 += x0.y * q; b1 += x1.y * q; b2 += x2.y * q; b3 += x3.y * q;
        tap += params.co4;
        p = load4_w(tap);
        q = load4_w(tap + 1u);
        a0 += x0.z * p; a1 += x1.z * p; a2 += x2.z * p; a3 += x3.z * p;
        b0 += x0.z * q; b1 += x1.z * q; b2 += x2.z * q; b3 += x3.z * q;
        tap += params.co4;
        p = load4_w(tap);
        q = load4_w(tap + 1u);
        a0 += x0.w * p; a1 += x1.w * p; a2 += x2.w * p; a3 += x3.w * p;
        b0 += x0.w * q; b1 += x1.w * q; b2 += x2.w * q; b3 += x3.w * q;
        tap += params.co4;
    }
    put(first, c4, a0, b0);
    put(first + 1u, c4, a1, b1);
    put(first + 2u, c4, a2, b2);
    put(first + 3u, c4, a3, b3);
}

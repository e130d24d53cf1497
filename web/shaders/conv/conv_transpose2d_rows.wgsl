// conv_transpose2d_rows: one invocation computes TILE * SW neighbouring pixels of a row by four output channels.
//
//   x  [N, IH, IW, CI]              read four channels at a time
//   w  [KH, KW, CI, ceil(CO/4)]     vec4 of output channels, packed at load, zeros behind CO
//   y  [N, OH, OW, CO]              written in quads, or one by one if CO % 4 != 0
//   Needs: CI % 4 == 0, one group, no dilation.
//   Before pads are cut, tap (ky, kx) of pixel (iy, ix) adds to (iy * SH + ky, ix * SW + kx). So a cell, the SW pixels
//   from qx * SW on, has tap kx = jx * SW + px of pixel qx - jx in its pixel px, for every jx; rows are alike.
//   SLICES invocations share each sum and meet in workgroup memory.
//   Dispatch: (rows * ceil(cells/TILE) * ceil(CO/4) * SLICES / 64)

{{ prelude }}
const WG: u32 = 64u;
const SLICES: u32 = {{ slices }}u;
const ITEMS: u32 = WG / SLICES;
const TILE: u32 = {{ tile }}u;
const SH: u32 = {{ sh }}u;
const SW: u32 = {{ sw }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
const SUMS: u32 = TILE * SW;
{$ include "_epilogue.wgsl" $}
{$ include "_put.wgsl" $}
$$ if slices > 1

var<workgroup> partial: array<w_v, 64>;
$$ endif

// Stores the pixel `i` of the row's `tile`, if the pads have left it.
fn put_pixel(row: u32, tile: u32, i: u32, c4: u32, sum: w_v) {
    let ox = i32((params.first + tile * TILE) * SW + i) - params.pad_left;
    if (row < params.rows && ox >= 0 && ox < i32(params.ow)) { put(row * params.ow + u32(ox), c4, sum); }
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = (group.x + group.y * groups.x) * ITEMS + local % ITEMS;
    let slice = local / ITEMS;
    let c4 = index % params.co4;
    let tile = index / params.co4 % params.tiles;
    let row = index / params.co4 / params.tiles;
    // Rows behind the last repeat it and are not stored: no barrier may stand behind a return.
    let real = min(row, params.rows - 1u);
    let n = real / params.oh;
    let bottom = real % params.oh + u32(params.pad_top);
    let qy = i32(bottom / SH);
    let qx = i32(params.first + tile * TILE);
    var sum: array<w_v, SUMS>;
    for (var i = 0u; i < SUMS; i++) { sum[i] = w_v(); }
    for (var ky = bottom % SH; ky < KH; ky += SH) {
        let iy = qy - i32(ky / SH);
        if (iy < 0 || iy >= i32(params.ih)) { continue; }
        let line = (n * params.ih + u32(iy)) * params.iw;
        for (var jx = 0u; jx * SW < KW; jx++) {
            var at: array<u32, TILE>;
            var inside: array<bool, TILE>;
            for (var t = 0u; t < TILE; t++) {
                let ix = qx + i32(t) - i32(jx);
                inside[t] = ix >= 0 && ix < i32(params.iw);
                at[t] = select(0u, (line + u32(ix)) * params.ci4, inside[t]);
            }
            for (var k = slice; k < params.ci4; k += SLICES) {
                var v: array<x_v, TILE>;
                for (var t = 0u; t < TILE; t++) { v[t] = select(x_v(), input4(at[t] + k), inside[t]); }
                for (var px = 0u; px < SW; px++) {
                    if (jx * SW + px >= KW) { break; }
                    let tap = (((ky * KW + jx * SW + px) * params.ci4 + k) * 4u) * params.co4 + c4;
                    let w0 = load4_w(tap);
                    let w1 = load4_w(tap + params.co4);
                    let w2 = load4_w(tap + 2u * params.co4);
                    let w3 = load4_w(tap + 3u * params.co4);
                    for (var t = 0u; t < TILE; t++) {
                        sum[t * SW + px] += v[t].x * w0 + v[t].y * w1 + v[t].z * w2 + v[t].w * w3;
                    }
                }
            }
        }
    }
    $$ if slices > 1
    for (var i = 0u; i < SUMS; i++) {
        partial[local] = sum[i];
        workgroupBarrier();
        if (slice == i % SLICES) {
            var all = w_v();
            for (var s = 0u; s < SLICES; s++) { all += partial[s * ITEMS + local % ITEMS]; }
            put_pixel(row, tile, i, c4, all);
        }
        workgroupBarrier();
    }
    $$ else
    for (var i = 0u; i < SUMS; i++) { put_pixel(row, tile, i, c4, sum[i]); }
    $$ endif
}

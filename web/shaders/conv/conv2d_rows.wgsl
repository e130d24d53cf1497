// conv2d_rows: for high windows: one invocation computes ROWS neighbouring pixels of a column by QUADS * 4 channels.
//
//   x  [N, IH, IW, CI]              read four channels at a time, or one by one
//   w  [KH, KW, CI, ceil(CO/4)]     vec4 of output channels, packed at load, zeros behind CO
//   y  [N, OH, OW, CO]              written in quads, or one by one if CO % 4 != 0
//   Needs: one group, no stride and no dilation along H; CI % 4 == 0 if INNER == 4.  Padded taps count as 0.
//   Each row of the window needs one more pixel of x: the others are those of the row before, one further up.
//   Dispatch: (N * ceil(OH/ROWS) * OW * ceil(ceil(CO/4)/QUADS) / WG), neighbours read neighbouring pixels

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const ROWS: u32 = 4u;
const INNER: u32 = {{ inner }}u;
const QUADS: u32 = {{ quads }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
{$ include "_epilogue.wgsl" $}
{$ include "_put.wgsl" $}

// Element or quad k of pixel ix of row iy of image n, 0 outside.
$$ if inner == 4
fn pixel_at(n: u32, iy: i32, ix: i32, k: u32) -> x_v {
$$ else
fn pixel_at(n: u32, iy: i32, ix: i32, k: u32) -> x_t {
$$ endif
    let real = iy >= 0 && iy < i32(params.ih) && ix >= 0 && ix < i32(params.iw);
    let at = select(0u, (n * params.ih + u32(iy)) * params.iw + u32(ix), real) * params.depth + k;
    $$ if inner == 4
    return select(x_v(), input4(at), real);
    $$ else
    return select(x_t(), input1(at), real);
    $$ endif
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let bands = (params.oh + ROWS - 1u) / ROWS;
    let ox = index % params.ow;
    let band = index / params.ow % bands;
    let columns = (params.co4 + QUADS - 1u) / QUADS;
    let c4 = index / (params.ow * bands) % columns * QUADS;
    let n = index / (params.ow * bands * columns);
    if (n >= params.images) { return; }

    let top = i32(band * ROWS) - params.pad_top;
    let left = i32(ox * params.stride_w) - params.pad_left;
    var sum: array<w_v, ROWS * QUADS>;
    for (var i = 0u; i < ROWS * QUADS; i++) { sum[i] = w_v(); }
    for (var kx = 0u; kx < KW; kx++) {
        let ix = left + i32(kx * params.dilation_w);
        for (var k = 0u; k < params.depth; k++) {
            var x1 = pixel_at(n, top, ix, k);
            var x2 = pixel_at(n, top + 1, ix, k);
            var x3 = pixel_at(n, top + 2, ix, k);
            var x0 = x1;
            for (var ky = 0u; ky < KH; ky++) {
                x0 = x1; x1 = x2; x2 = x3;
                // x0..x2 are rows ky..ky+2 of the window's column, x3 the next one.
                x3 = pixel_at(n, top + i32(ky) + 3, ix, k);
                let tap = ((ky * KW + kx) * params.depth + k) * INNER * params.co4;
                for (var q = 0u; q < QUADS; q++) {
                    let at = tap + min(c4 + q, params.co4 - 1u);
                    $$ if inner == 4
                    let w0 = load4_w(at);
                    let w1 = load4_w(at + params.co4);
                    let w2 = load4_w(at + 2u * params.co4);
                    let w3 = load4_w(at + 3u * params.co4);
                    sum[ROWS * q] += x0.x * w0 + x0.y * w1 + x0.z * w2 + x0.w * w3;
                    sum[ROWS * q + 1u] += x1.x * w0 + x1.y * w1 + x1.z * w2 + x1.w * w3;
                    sum[ROWS * q + 2u] += x2.x * w0 + x2.y * w1 + x2.z * w2 + x2.w * w3;
                    sum[ROWS * q + 3u] += x3.x * w0 + x3.y * w1 + x3.z * w2 + x3.w * w3;
                    $$ else
                    let w = load4_w(at);
                    sum[ROWS * q] += x0 * w;
                    sum[ROWS * q + 1u] += x1 * w;
                    sum[ROWS * q + 2u] += x2 * w;
                    sum[ROWS * q + 3u] += x3 * w;
                    $$ endif
                }
            }
        }
    }
    for (var i = 0u; i < ROWS * QUADS; i++) {
        let oy = band * ROWS + i % ROWS;
        if (oy < params.oh) { put((n * params.oh + oy) * params.ow + ox, c4 + i / ROWS, sum[i]); }
    }
}

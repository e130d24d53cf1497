// depthwise_4x1: one invocation computes four neighbouring pixels of a row by four channels in registers.
//
//   x  [N, IH, IW, C]     read in quads
//   w  [KH, KW, C]        read in quads
//   y  [N, OH, OW, C]     written in quads
//   Needs: C % 4 == 0, one output channel per input channel.  Padded taps count as 0.
//   Dispatch: (N * OH * ceil(OW/4) * C/4 / WG), neighbours share their pixels

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
{$ include "_epilogue.wgsl" $}

fn put(row: u32, ox: u32, c4: u32, sum: w_v) {
    if (ox >= params.ow) { return; }
    let pixel = row * params.ow + ox;
    store4_y(pixel * params.co4 + c4, finish(sum, pixel, c4));
}

// Column ix of a row, 0 outside.
fn column(line: u32, ix: i32, c4: u32) -> x_v {
    let real = ix >= 0 && ix < i32(params.iw);
    return select(x_v(), input4((line + select(0u, u32(ix), real)) * params.co4 + c4), vec4<bool>(real));
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    let columns = (params.ow + 3u) / 4u;
    let c4 = index % params.co4;
    let ox = (index / params.co4) % columns * 4u;
    let row = index / (params.co4 * columns);
    if (row >= params.rows) { return; }

    let n = row / params.oh;
    let top = i32(row % params.oh * params.stride_h) - params.pad_top;
    let left = i32(ox * params.stride_w) - params.pad_left;
    var s0 = w_v(); var s1 = w_v(); var s2 = w_v(); var s3 = w_v();
    for (var ky = 0u; ky < KH; ky++) {
        let iy = top + i32(ky * params.dilation_h);
        if (iy < 0 || iy >= i32(params.ih)) { continue; }
        let line = (n * params.ih + u32(iy)) * params.iw;
        $$ if sliding
        // Stride and dilation 1: the four windows overlap, each step brings one new column.
        var x0 = column(line, left, c4);
        var x1 = column(line, left + 1, c4);
        var x2 = column(line, left + 2, c4);
        for (var kx = 0u; kx < KW; kx++) {
            let x3 = column(line, left + 3 + i32(kx), c4);
            let w = load4_w((ky * KW + kx) * params.co4 + c4);
            s0 += x0 * w; s1 += x1 * w; s2 += x2 * w; s3 += x3 * w;
            x0 = x1; x1 = x2; x2 = x3;
        }
        $$ else
        let step = i32(params.stride_w);
        for (var kx = 0u; kx < KW; kx++) {
            let ix = left + i32(kx * params.dilation_w);
            let w = load4_w((ky * KW + kx) * params.co4 + c4);
            s0 += column(line, ix, c4) * w;
            s1 += column(line, ix + step, c4) * w;
            s2 += column(line, ix + 2 * step, c4) * w;
            s3 += column(line, ix + 3 * step, c4) * w;
        }
        $$ endif
    }
    put(row, ox, c4, s0);
    put(row, ox + 1u, c4, s1);
    put(row, ox + 2u, c4, s2);
    put(row, ox + 3u, c4, s3);
}

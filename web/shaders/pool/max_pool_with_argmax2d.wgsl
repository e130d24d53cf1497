// max_pool_with_argmax2d: the largest element of each window and the tap it came from (ky*KW + kx + 0.1).
//
//   x [N, IH, IW, C], y and taps [N, OH, OW, C]; four consecutive output elements an invocation
//   Padded taps never win; the first of equals does, row by row, or with `by_columns` column by column.
//   Dispatch: (ceil(N*OH*OW*C / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const KH: u32 = {{ kh }}u;
const KW: u32 = {{ kw }}u;
const LOWEST: f32 = -3.4028234663852886e38;
{$ include "_activation.wgsl" $}

// (largest, tap) for output element i.
fn winner(i: u32) -> vec2<f32> {
    let c = i % params.c;
    let pixel = i / params.c;
    let n = pixel / (params.oh * params.ow);
    let top = i32((pixel / params.ow) % params.oh * params.stride_h) - params.pad_top;
    let left = i32(pixel % params.ow * params.stride_w) - params.pad_left;
    var best = vec2<f32>(LOWEST, -1.0);
    for (var tap = 0u; tap < KH * KW; tap++) {
        $$ if by_columns
        let ky = tap % KH;
        let kx = tap / KH;
        $$ else
        let ky = tap / KW;
        let kx = tap % KW;
        $$ endif
        let iy = top + i32(ky);
        let ix = left + i32(kx);
        if (iy < 0 || iy >= i32(params.ih) || ix < 0 || ix >= i32(params.iw)) { continue; }
        let v = load_x(((n * params.ih + u32(iy)) * params.iw + u32(ix)) * params.c + c);
        if (v > best.x || best.y < 0.0) { best = vec2<f32>(v, f32(ky * KW + kx)); }
    }
    return best;
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    var v = vec4<f32>(0.0);
    var tap = vec4<f32>(0.0);
    for (var lane = 0u; lane < 4u; lane++) {
        let i = 4u * quad + lane;
        if (i < params.count) {
            let found = winner(i);
            v[lane] = found.x;
            tap[lane] = found.y + 0.1;
        }
    }
    store4_y(quad, activate(v));
    store4_taps(quad, tap);
}

// _pooled_residual: residual_at(pixel, c4) is the largest of a window over an image [N, PH, PW, RC].
//
//   Padded taps never win; channels beyond RC count as 0.
//   Needs: a binding residual, params residual_c, oh, ow, lowest, pool_*.

const POOL_KH: i32 = {{ pool_kh }};
const POOL_KW: i32 = {{ pool_kw }};

fn pooled_quad(at: u32, c4: u32) -> vec4<f32> {
    $$ if pool_quads
    return load4_residual(at * (params.residual_c / 4u) + c4);
    $$ else
    var v = vec4<f32>(0.0);
    for (var lane = 0u; lane < 4u; lane++) {
        let c = 4u * c4 + lane;
        if (c < params.residual_c) { v[lane] = load_residual(at * params.residual_c + c); }
    }
    return v;
    $$ endif
}

fn residual_at(pixel: u32, c4: u32) -> vec4<f32> {
    if (4u * c4 >= params.residual_c) { return vec4<f32>(0.0); }
    let n = pixel / (params.oh * params.ow);
    let top = i32((pixel / params.ow) % params.oh * params.pool_stride_h) - params.pool_top;
    let left = i32(pixel % params.ow * params.pool_stride_w) - params.pool_left;
    var best = vec4<f32>(params.lowest);
    for (var ky = 0; ky < POOL_KH; ky++) {
        let iy = top + ky;
        if (iy < 0 || iy >= i32(params.pool_ih)) { continue; }
        for (var kx = 0; kx < POOL_KW; kx++) {
            let ix = left + kx;
            if (ix < 0 || ix >= i32(params.pool_iw)) { continue; }
            best = max(best, pooled_quad((n * params.pool_ih + u32(iy)) * params.pool_iw + u32(ix), c4));
        }
    }
    return best;
}

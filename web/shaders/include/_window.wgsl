// _window: where a convolution looks: quads of x under one tap of a window, zeros outside of the image.
//
//   corner(pixel) = where the window of an output pixel starts; input_at(corner, dy, dx, k) = quad k of the pixel of x
//   at dy, dx from there.
//   Needs: _epilogue, x [N, IH, IW, CI] with CI % 4 == 0, params ih, iw, oh, ow, stride_*, pad_top, pad_left, ci4.

// Quads of x where output pixel `pixel` looks, without the tap: (row of the image, top, left).
fn corner(pixel: u32) -> vec3<i32> {
    let n = pixel / (params.oh * params.ow);
    return vec3<i32>(
        i32(n * params.ih),
        i32((pixel / params.ow) % params.oh * params.stride_h) - params.pad_top,
        i32(pixel % params.ow * params.stride_w) - params.pad_left,
    );
}

fn input_at(c: vec3<i32>, dy: i32, dx: i32, k: u32) -> x_v {
    let iy = c.y + dy;
    let ix = c.z + dx;
    let real = iy >= 0 && iy < i32(params.ih) && ix >= 0 && ix < i32(params.iw);
    let at = select(0u, u32((c.x + iy) * i32(params.iw) + ix), real);
    return select(x_v(), input4(at * params.ci4 + k), vec4<bool>(real));
}

// _put: stores a finished quad of channels of a pixel; what lies outside of y is left out.

fn put(pixel: u32, c4: u32, sum: w_v) {
    if (pixel >= params.pixels || c4 >= params.co4) { return; }
    let v = finish(sum, pixel, c4);
    $$ if co_quads
    store4_y(pixel * params.co4 + c4, v);
    $$ else
    for (var lane = 0u; lane < min(4u, params.co - 4u * c4); lane++) {
        store_y(pixel * params.co + 4u * c4 + lane, v[lane]);
    }
    $$ endif
}

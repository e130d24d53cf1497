// _put: put(pixel, c4, sum) finishes a sum of products and stores it as channels 4*c4..4*c4+3 of a pixel.
//
//   What lies outside of y [pixels, CO] is left out.
//   Needs: _epilogue, a binding y, params.pixels, params.co4 (quads of channels, the last one filled up), params.co.

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

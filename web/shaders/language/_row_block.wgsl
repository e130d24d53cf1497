// _row_block: row_block(row, at, factor): 32 neighbours of a row of x, as a product with blocks takes them.
//
//   An element is v * step. Unless weights are floats, v are whole numbers from -16256 to 16256, and `sums` those of
//   each half.  Needs: x [ROWS, K], scale [K] if normed, params.k.

struct RowBlock { v: array<vec4<f32>, 8>, step: f32, sums: vec2<f32> }

fn row_block(row: u32, at: u32, factor: f32) -> RowBlock {
    var x = RowBlock(array<vec4<f32>, 8>(), 1.0, vec2<f32>());
    var top = vec4<f32>();
    for (var j = 0u; j < 8u; j++) {
        var v = load4_x((row * params.k + 32u * at) / 4u + j);
        $$ if normed
        v *= factor * load4_scale(8u * at + j);
        $$ endif
        x.v[j] = v;
        top = max(top, abs(v));
    }
    $$ if not floats
    let most = max(max(top.x, top.y), max(top.z, top.w));
    let inverse = select(0.0, 16256.0 / most, most > 1e-33);
    x.step = most / 16256.0;
    var low = vec4<f32>();
    var high = vec4<f32>();
    for (var j = 0u; j < 4u; j++) {
        x.v[j] = round(x.v[j] * inverse);
        x.v[j + 4u] = round(x.v[j + 4u] * inverse);
        low += x.v[j];
        high += x.v[j + 4u];
    }
    x.sums = vec2<f32>(dot(low, vec4<f32>(1.0)), dot(high, vec4<f32>(1.0)));
    $$ endif
    return x;
}

// _mask_of_keys: `mask_quad(at, key)`, an attention's mask of four keys; what lies behind the last key is hidden.
//
//   With `skips`, also what blocks of keys need that may be hidden from all rows. With `spread`, `at` has the places where
//   the two parts of a row's mask begin.

$$ if skips
var<workgroup> visible: u32; // the first key, plus one, of the last block of which a row sees a key
fn hides(m: vec4<f32>, seen: bool) -> bool {
    return all(bitcast<vec4<u32>>(m) == vec4<u32>(0xff800000u)) || (seen && all(m <= vec4<f32>(LOW)));
}
$$ endif
$$ if spread and mask_quads
fn mask_quad(at: vec2<u32>, key: u32) -> vec4<f32> {
    if (key >= params.keys) { return vec4<f32>(LOWEST); }
    return load_mask(at.x + key / params.spread) + load4_columns((at.y + key % params.spread) / 4u);
}
$$ elif spread
fn mask_quad(at: vec2<u32>, key: u32) -> vec4<f32> {
    var m = vec4<f32>(LOWEST);
    for (var c = key; c < min(key + 4u, params.keys); c++) {
        m[c - key] = load_mask(at.x + c / params.spread) + load_columns(at.y + c % params.spread);
    }
    return m;
}
$$ elif masked and mask_quads
fn mask_quad(at: u32, key: u32) -> vec4<f32> {
    if (key >= params.keys) { return vec4<f32>(LOWEST); }
    return load4_mask((at + key) / 4u);
}
$$ elif masked
fn mask_quad(at: u32, key: u32) -> vec4<f32> {
    var m = vec4<f32>(LOWEST);
    for (var c = 0u; c < 4u; c++) { if (key + c < params.keys) { m[c] = load_mask(at + key + c); } }
    return m;
}
$$ endif

// _quads_of_rows: `quad_q(at, d)`, `quad_k` and `quad_v`: quad d of the row that begins with element `at`.
//
//   With `quads`, rows are whole quads; else what lies behind the last element is 0.

$$ if quads
fn quad_q(at: u32, d: u32) -> vec4<f32> { return load4_q(at / 4u + d); }
fn quad_k(at: u32, d: u32) -> vec4<f32> { return load4_k(at / 4u + d); }
fn quad_v(at: u32, d: u32) -> vec4<f32> { return load4_v(at / 4u + d); }
$$ else
fn quad_q(at: u32, d: u32) -> vec4<f32> {
    var x: vec4<f32>;
    for (var i = 0u; i < 4u; i++) { if (4u * d + i < params.d) { x[i] = load_q(at + 4u * d + i); } }
    return x;
}
fn quad_k(at: u32, d: u32) -> vec4<f32> {
    var x: vec4<f32>;
    for (var i = 0u; i < 4u; i++) { if (4u * d + i < params.d) { x[i] = load_k(at + 4u * d + i); } }
    return x;
}
fn quad_v(at: u32, d: u32) -> vec4<f32> {
    var x: vec4<f32>;
    for (var i = 0u; i < 4u; i++) { if (4u * d + i < params.e) { x[i] = load_v(at + 4u * d + i); } }
    return x;
}
$$ endif

// _late_bound: `bounded(v)`, the larger or the smaller of v and params.late_bound; a NaN stays one.

$$ if late == "larger"
fn bounded(v: vec4<f32>) -> vec4<f32> {
    let bound = vec4<f32>(params.late_bound);
    return select(v, bound, v < bound);
}
$$ elif late == "smaller"
fn bounded(v: vec4<f32>) -> vec4<f32> {
    let bound = vec4<f32>(params.late_bound);
    return select(v, bound, v > bound);
}
$$ endif

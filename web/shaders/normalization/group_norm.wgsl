// group_norm: activation((x - mean) * factor + bias) of an image whose mean and factor group_moments found.
//
//   x, y          [N, pixels, C]  in quads
//   mean, factor  [N, C]
//   bias          [C], if `shifted`
//   Dispatch: (N * pixels * C / 4 / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
{$ include "_activation.wgsl" $}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (index >= params.count) { return; }
    let c4 = index % params.c4;
    let at = index / params.image * params.c4 + c4;
    var v = (load4_x(index) - load4_mean(at)) * load4_factor(at);
    $$ if shifted
    v += load4_bias(c4);
    $$ endif
    store4_y(index, activate(v));
}

// reduce_each: every invocation reduces for four consecutive elements of y, element by element.
//
//   x   any shape, seen as kept dimensions (size, stride: those of y) and reduced ones, neighbours merged
//   y   [count]
//   ROW: the four lie in one row of x with stride 1 and are read as quads
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const KEPT: u32 = {{ kept }}u;
const REDUCED: u32 = {{ reduced }}u;
{$ include "_reduce.wgsl" $}

fn kept_place(i: u32) -> u32 {
    var rest = i;
    var at = 0u;
    for (var back = 0u; back < KEPT; back++) {
        let d = KEPT - 1u - back;
        at += rest % kept_size_at(d) * kept_stride_at(d);
        rest /= kept_size_at(d);
    }
    return at;
}

fn reduced_place(i: u32) -> u32 {
    var rest = i;
    var at = 0u;
    for (var back = 0u; back < REDUCED; back++) {
        let d = REDUCED - 1u - back;
        at += rest % reduced_size_at(d) * reduced_stride_at(d);
        rest /= reduced_size_at(d);
    }
    return at;
}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    var acc = start();
    $$ if row
    let base = kept_place(4u * quad);
    for (var r = 0u; r < params.reduced; r++) {
        acc = step(acc, load4_x((base + reduced_place(r)) / 4u));
    }
    $$ else
    let last = params.count - 1u;
    let base = vec4<u32>(
        kept_place(4u * quad), kept_place(min(4u * quad + 1u, last)),
        kept_place(min(4u * quad + 2u, last)), kept_place(min(4u * quad + 3u, last)),
    );
    for (var r = 0u; r < params.reduced; r++) {
        let at = base + reduced_place(r);
        acc = step(acc, x_v(load_x(at.x), load_x(at.y), load_x(at.z), load_x(at.w)));
    }
    $$ endif
    store4_y(quad, finish(acc));
}

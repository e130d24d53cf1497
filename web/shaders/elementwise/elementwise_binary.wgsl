// elementwise_binary: y = activation(op(a, b)), four consecutive elements of y an invocation.
//
//   a, b, y   shapes broadcast; y's dimensions are merged where both inputs allow
//   access    "flat": both as y; "row": one index computation a quad (inner size % 4 == 0); "each": one an element
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const RANK: u32 = {{ rank }}u;
const A_STEP: u32 = {{ a_step }}u;
const B_STEP: u32 = {{ b_step }}u;
{$ include "_binary.wgsl" $}
$$ if has_activation
{$ include "_activation.wgsl" $}
$$ else
fn activate(v: y_v) -> y_v { return v; }
$$ endif

{$ include "_places.wgsl" $}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    $$ if access == "flat"
    let a = load4_a(quad);
    let b = load4_b(quad);
    $$ elif access == "row"
    let at = places(4u * quad);
    var a = a_v(load_a(at.x));
    var b = b_v(load_b(at.y));
    if (A_STEP == 1u) { a = load4_a(at.x / 4u); }
    if (B_STEP == 1u) { b = load4_b(at.y / 4u); }
    $$ else
    var a: a_v;
    var b: b_v;
    for (var lane = 0u; lane < 4u; lane++) {
        let at = places(min(4u * quad + lane, params.count - 1u));
        a[lane] = load_a(at.x);
        b[lane] = load_b(at.y);
    }
    $$ endif
    store4_y(quad, activate(binary(a, b)));
}

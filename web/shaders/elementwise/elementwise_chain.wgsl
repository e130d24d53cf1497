// elementwise_chain: y = a chain of elementwise formulas, four consecutive elements of y an invocation; behind it its
// pixels may move: mirrored beyond the edge, or repeated.
//
//   x0, x1, ... are what the chain reads: as y lies, or broadcast to the shape of the step that reads it
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
alias x_v = vec4<f32>;
$$ if needs_math
{$ include "_math.wgsl" $}
{$ include "_erf.wgsl" $}
$$ endif
$$ if "power(" in formula
{$ include "_power.wgsl" $}
$$ endif
$$ if "keep_nan(" in formula
{$ include "_keep_nan.wgsl" $}
$$ endif
{{ formula }}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    store4_y(quad, y_v(chain(moved(quad))));
}

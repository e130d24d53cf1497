// described: a kernel of expr/kernel.py; `formula` gives an element of y, or four that lie together in it and in x.
//
//   y [count]; four consecutive elements an invocation
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

{{ formula }}

$$ if quads
@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let quad = gid.x + gid.y * groups.x * WG;
    if (4u * quad >= params.count) { return; }
    store4_y(quad, four(quad));
}
$$ else
{$ include "_each_element.wgsl" $}
$$ endif

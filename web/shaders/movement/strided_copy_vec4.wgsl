// strided_copy_vec4: strided_copy by whole quads: one invocation moves one quad of the box.
//
//   x, y  any shape, moved bit for bit; sizes, strides and offsets of the parameters count quads
//   Needs: the innermost dimension is contiguous on both sides and everything is divisible by 4.
//   Dispatch: (quads of the box / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const RANK: u32 = {{ rank }}u;

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (index >= params.quads) { return; }
    var rest = index;
    var source = params.source_offset;
    var place = params.target_offset;
    for (var back = 0u; back < RANK; back++) {
        let d = RANK - 1u - back;
        let k = rest % size_at(d);
        rest /= size_at(d);
        source += i32(k) * source_stride_at(d);
        place += k * target_stride_at(d);
    }
    store4_y(place, load4_x(u32(source)));
}

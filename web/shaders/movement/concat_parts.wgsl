// concat_parts: several parts of a concatenation in one dispatch: one invocation moves one quad, or one element.
//
//   x0, x1, …  [rows, size0], [rows, size1], …     y  [rows, row]; moved bit for bit
//   Row r of part i lies in row r of y from at_i on. Sizes, row and places count quads, or elements if not `quads`.
//   Needs: for quads everything divisible by 4; else elements of 32 bits.
//   Dispatch: (rows * (size0 + size1 + …) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

$$ if quads
fn put(at: u32, v: x0_v) { store4_y(at, v); }
$$ else
fn put(at: u32, v: x0_t) { store_y(at, v); }
$$ endif

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (index >= params.units) { return; }
    let row = index / params.width;
    var rest = index % params.width;
    $$ for i in range(parts)
    if (rest < params.size{{ i }}) {
        put(row * params.row + params.at{{ i }} + rest, load{{ 4 if quads else "" }}_x{{ i }}(row * params.size{{ i }} + rest));
        return;
    }
    rest -= params.size{{ i }};
    $$ endfor
}

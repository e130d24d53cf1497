// recurrent_step: what follows the product in step number `i` of all sequences; an invocation a unit.
//
//   sums [S, B, G*H]; shares [B, G, PADDED]; bias, peepholes, lengths where they are       read
//   stage "reset": y [B, H] = reset * last;  else y [S, B, H] of this step and last, cells [B, H], in place
//   Dispatch: (B*H / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const SIZE: u32 = {{ size }}u;
const PADDED: u32 = {{ padded }}u;
const GATES: u32 = {{ gates }}u;
var<private> sequence: u32;
fn product(gate: u32, u: u32) -> f32 { return load_shares((sequence * GATES + gate) * PADDED + u); }
{$ include "_cell.wgsl" $}
{$ include "_row.wgsl" $}

@compute @workgroup_size(WG)
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = gid.x + gid.y * groups.x * WG;
    if (index >= params.batch * SIZE) { return; }
    sequence = index / SIZE;
    let u = index % SIZE;
    let count = count_of(sequence);
    let time = (time_of(params.i, count) * params.batch + sequence) * SIZE;
    let before = load_last(index);
    $$ if stage == "reset"
    store_y(index, before * gate_of(time * GATES, 1u, u, 0.0));
    $$ else
    var next = 0.0;
    if (params.i < count) {
        next = next_state(time * GATES, sequence, u, before);
        store_last(index, next);
    }
    store_y(time + u, next);
    $$ endif
}

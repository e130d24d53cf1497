// recurrent_sequence: a workgroup computes the steps [first, last) of one sequence, its state in shared memory.
//
//   sums [S, B, G*H]; w [H, G, PADDED] in quads; bias, peepholes, lengths where they are     read
//   y [S, B, H]  written; last, cells [B, H]  read before the first of these steps, written after the last
//   Dispatch: (B) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const SIZE: u32 = {{ size }}u;
const PADDED: u32 = {{ padded }}u;
const GATES: u32 = {{ gates }}u;
const QUADS: u32 = GATES * PADDED / 4u;
const ROOM: u32 = {{ room }}u;
var<workgroup> state: array<f32, ROOM>;  // as it is; then, if products see another one: reset or rounded
var<workgroup> products: array<vec4<f32>, QUADS>;
fn product(gate: u32, u: u32) -> f32 {
    let at = gate * PADDED + u;
    return products[at / 4u][at % 4u];
}
{$ include "_cell.wgsl" $}
{$ include "_row.wgsl" $}

$$ if rounded
{$ include "_levels.wgsl" $}
fn round_state(local: u32) {
    var low = 0.0;
    var high = 0.0;
    for (var u = 0u; u < SIZE; u++) {
        low = min(low, state[u]);
        high = max(high, state[u]);
    }
    let levels = levels_of(low, high);
    for (var u = local; u < SIZE; u += WG) { state[PADDED + u] = nearest_level(state[u], levels); }
}
$$ endif

fn multiply(start: u32, first: u32, end: u32) {
    for (var q = first; q < end; q += WG) {
        var sum = vec4<f32>(0.0);
        for (var k = 0u; k < SIZE; k++) { sum += state[start + k] * load4_w(k * QUADS + q); }
        products[q] = sum;
    }
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let b = group.x;
    let count = count_of(b);
    for (var u = local; u < SIZE; u += WG) { state[u] = load_last(b * SIZE + u); }
    workgroupBarrier();
    for (var i = params.first; i < params.last; i++) {
        let time = (time_of(i, count) * params.batch + b) * SIZE;
        let row = time * GATES;
        $$ if gated
        multiply(0u, local, 2u * PADDED / 4u);
        workgroupBarrier();
        for (var u = local; u < SIZE; u += WG) { state[PADDED + u] = state[u] * gate_of(row, 1u, u, 0.0); }
        workgroupBarrier();
        multiply(PADDED, 2u * PADDED / 4u + local, QUADS);
        $$ elif rounded
        round_state(local);
        workgroupBarrier();
        multiply(PADDED, local, QUADS);
        $$ else
        multiply(0u, local, QUADS);
        $$ endif
        workgroupBarrier();
        for (var u = local; u < SIZE; u += WG) {
            if (i < count) {
                state[u] = next_state(row, b, u, state[u]);
                store_y(time + u, state[u]);
            } else {
                store_y(time + u, 0.0);
            }
        }
        workgroupBarrier();
    }
    for (var u = local; u < SIZE; u += WG) { store_last(b * SIZE + u, state[u]); }
}

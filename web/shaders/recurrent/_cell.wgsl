// _cell: `next_state(row, b, u, before)`, the next state of unit u of sequence b; an LSTM's cells are kept in `cells`.
//
//   row is where the step's sums begin; `product(gate, u)` is the state's share of a gate without the bias
//   Needs: variables cell, reset_after, coupled, activation, peepholes, biased; SIZE; a binding for each input that is
//   there; params.clip, params.cell_clip

{$ include "_math.wgsl" $}
{$ include "_activation.wgsl" $}
const COUPLED: u32 = {{ coupled }}u;
const RESET_AFTER: u32 = {{ reset_after }}u;

$$ if biased
fn share(gate: u32, u: u32) -> f32 { return product(gate, u) + load_bias(gate * SIZE + u); }
$$ else
fn share(gate: u32, u: u32) -> f32 { return product(gate, u); }
$$ endif
$$ if peepholes
fn look(gate: u32, u: u32, c: f32) -> f32 { return c * load_peepholes(gate * SIZE + u); }
$$ else
fn look(gate: u32, u: u32, c: f32) -> f32 { return 0.0; }
$$ endif
fn bounded(x: f32) -> f32 { return clamp(x, -params.clip, params.clip); }
fn shown(x: f32) -> f32 { return activate(vec4<f32>(x)).x; }
fn total(row: u32, gate: u32, u: u32) -> f32 { return load_sums(row + gate * SIZE + u) + share(gate, u); }
fn gate_of(row: u32, gate: u32, u: u32, seen: f32) -> f32 {
    return sigmoid(vec4<f32>(bounded(total(row, gate, u) + seen))).x;
}

$$ if cell == "rnn"
fn next_state(row: u32, b: u32, u: u32, before: f32) -> f32 { return shown(bounded(total(row, 0u, u))); }
$$ elif cell == "gru"
fn next_state(row: u32, b: u32, u: u32, before: f32) -> f32 {
    let update = gate_of(row, 0u, u, 0.0);
    var past = share(2u, u);
    if (RESET_AFTER == 1u) { past *= gate_of(row, 1u, u, 0.0); }
    return update * before + (1.0 - update) * shown(bounded(load_sums(row + 2u * SIZE + u) + past));
}
$$ else
fn next_state(row: u32, b: u32, u: u32, before: f32) -> f32 {
    let c = load_cells(b * SIZE + u);
    let forget = gate_of(row, 2u, u, look(2u, u, c));
    var enter = 1.0 - forget;
    if (COUPLED == 0u) { enter = gate_of(row, 0u, u, look(0u, u, c)); }
    let fresh = forget * c + enter * shown(bounded(total(row, 3u, u)));
    let next = clamp(fresh, -params.cell_clip, params.cell_clip);
    store_cells(b * SIZE + u, next);
    return gate_of(row, 1u, u, look(1u, u, next)) * shown(next);
}
$$ endif

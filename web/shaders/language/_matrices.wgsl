// _matrices: several matrices that one input is multiplied with, side by side: their columns, or a gate and what it gates.
//
//   side_of(n), first_of(side): the matrix of column n of all, and its first column.  Needs: params.first1, .first2

fn side_of(n: u32) -> u32 {
    var side = 0u;
    $$ if not gated
    $$ for m in range(1, matrices)
    if (n >= params.first{{ m }}) { side = {{ m }}u; }
    $$ endfor
    $$ endif
    return side;
}
fn first_of(side: u32) -> u32 {
    $$ if not gated
    $$ for m in range(1, matrices)
    if (side == {{ m }}u) { return params.first{{ m }}; }
    $$ endfor
    $$ endif
    return 0u;
}
$$ if gated

// silu(gate) * up
fn gated(gate: f32, up: f32) -> f32 {
    let e = exp(-abs(gate));
    return gate * (select(e, 1.0, gate >= 0.0) / (1.0 + e)) * up;
}
$$ endif

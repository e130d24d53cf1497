// _matrices: several matrices that one input is multiplied with, side by side: their columns, or a gate and what it gates.
//
//   side_of(n), first_of(side): the matrix of column n of all, and its first column.  Needs: params.first1, .first2
//   store_quad(row, n, v): stores columns n to n + 3 of a row where results are stored in quads; they may lie apart.

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
$$ if apart

// The column behind the last one of a matrix.
fn end_of(side: u32) -> u32 {
    $$ for m in range(1, matrices)
    if (side + 1u == {{ m }}u) { return params.first{{ m }}; }
    $$ endfor
    return params.n;
}
$$ endif
$$ if gated

// silu(gate) * up
fn gated(gate: f32, up: f32) -> f32 {
    let e = exp(-abs(gate));
    return gate * (select(e, 1.0, gate >= 0.0) / (1.0 + e)) * up;
}
$$ endif
$$ if apart

fn store_quad(row: u32, n: u32, v: vec4<f32>) {
    let side = side_of(n); // matrices begin at quads
    let i = (row * (end_of(side) - first_of(side)) + n - first_of(side)) / 4u;
    switch side {
        $$ for m in range(1, matrices)
        case {{ m }}u: { store4_y{{ m }}(i, v); }
        $$ endfor
        default: { store4_y(i, v); }
    }
}
$$ elif quads

fn store_quad(row: u32, n: u32, v: vec4<f32>) { store4_y((row * params.n + n) / 4u, v); }
$$ endif

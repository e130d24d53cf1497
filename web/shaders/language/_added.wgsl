// _added: added(row, n): what comes to a sum of products besides: bias [N] of each matrix, residual [ROWS, N].

fn added(row: u32, n: u32) -> f32 {
    var v = 0.0;
    $$ if has_bias and matrices == 1
    v += load_bias(n);
    $$ elif has_bias
    let side = side_of(n);
    $$ for m in range(1, matrices)
    if (side == {{ m }}u) { v += load_bias{{ m }}(n - params.first{{ m }}); }
    $$ endfor
    if (side == 0u) { v += load_bias(n); }
    $$ endif
    $$ if has_residual
    v += load_residual(row * params.n + n);
    $$ endif
    return v;
}

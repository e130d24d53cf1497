// _added: added(row, n): what comes to a sum of products besides: bias [N], residual [ROWS, N].

fn added(row: u32, n: u32) -> f32 {
    var v = 0.0;
    $$ if has_bias
    v += load_bias(n);
    $$ endif
    $$ if has_residual
    v += load_residual(row * params.n + n);
    $$ endif
    return v;
}

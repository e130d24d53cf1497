// triangular: keeps a triangle of every matrix and zeroes the rest, moved bit for bit.
//
//   x, y [B, ROWS, COLUMNS]; kept where column - row >= diagonal (upper) or <= diagonal (lower)
//   Dispatch: (ceil(count / 4) / WG)

{{ prelude }}
const WG: u32 = {{ workgroup }}u;

fn element(at: u32) -> y_t {
    let offset = i32(at % params.columns) - i32((at / params.columns) % params.rows);
    $$ if upper
    let kept = offset >= params.diagonal;
    $$ else
    let kept = offset <= params.diagonal;
    $$ endif
    if (kept) { return load_x(at); }
    return y_t();
}

{$ include "_each_element.wgsl" $}

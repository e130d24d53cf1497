// _heads: query_of(row, i), key_of(row, i), value_of(row, i): what a token asks, is found by, and says, each by itself or
// side by side in the rows of qkv.  Needs: params.heads, params.groups, D.

$$ if joined
fn in_row(row: u32, i: u32) -> u32 { return row * (params.heads + 2u * params.groups) * D + i; }
fn query_of(row: u32, i: u32) -> f32 { return load_qkv(in_row(row, i)); }
fn key_of(row: u32, i: u32) -> f32 { return load_qkv(in_row(row, params.heads * D + i)); }
fn value_of(row: u32, i: u32) -> f32 { return load_qkv(in_row(row, (params.heads + params.groups) * D + i)); }
$$ else
fn query_of(row: u32, i: u32) -> f32 { return load_q(row * params.heads * D + i); }
fn key_of(row: u32, i: u32) -> f32 { return load_k(row * params.groups * D + i); }
fn value_of(row: u32, i: u32) -> f32 { return load_v(row * params.groups * D + i); }
$$ endif

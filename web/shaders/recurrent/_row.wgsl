// _row: which step of its sequence comes as number i, and whether there is one.
//
//   Needs: variables lengths, backward; params.steps; a binding lengths if there are any

$$ if lengths
fn count_of(b: u32) -> u32 { return min(u32(max(load_lengths(b), 0)), params.steps); }
$$ else
fn count_of(b: u32) -> u32 { return params.steps; }
$$ endif
$$ if backward
fn time_of(i: u32, count: u32) -> u32 { return select(i, count - 1u - i, i < count); }
$$ else
fn time_of(i: u32, count: u32) -> u32 { return i; }
$$ endif

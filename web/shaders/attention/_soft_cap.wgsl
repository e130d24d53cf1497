// _soft_cap: with `capped`, `soft_capped(x)`: cap * tanh(x / cap).

$$ if capped
{$ include "_math.wgsl" $}
fn soft_capped(x: vec4<f32>) -> vec4<f32> { return params.cap * safe_tanh(x / params.cap); }
$$ endif

// conv2d_gemv: for few pixels and long sums: the invocations of a workgroup share the sums of ROWS pixels by four
// channels and combine their parts.
//
//   x  [N, IH, IW, CI]     read four channels at a time
//   gate  [CI]             factors of the channels of x, if `gated`: then N = 1, and x is read as it lies
//   addend  [1, IH, IW, CI]  added to x times the factors, if `lifted`
//   w  [CO, KH, KW, CI]    read four input channels at a time, as models store it
//   y  [N, OH, OW, CO]     written in quads, or one by one if CO % 4 != 0
//   Needs: CI % 4 == 0, one group.  Padded taps count as 0.
//   Dispatch: (ceil(pixels/ROWS) * ceil(CO/4)) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const ROWS: u32 = {{ rows }}u;
const READERS: u32 = ROWS;
const KW: u32 = {{ kw }}u;
const TAPS: u32 = {{ taps }}u;
{$ include "_epilogue.wgsl" $}
{$ include "_put.wgsl" $}

$$ if pointwise
// Where a row of x begins, in quads.
alias Row = u32;
fn row_at(pixel: u32) -> Row { return min(pixel, params.pixels - 1u) * params.ci4; }
fn quad_of(row: Row, i: u32) -> x_v { return input4(row + i); }
$$ else
{$ include "_window.wgsl" $}
alias Row = vec3<i32>;
fn row_at(pixel: u32) -> Row { return corner(min(pixel, params.pixels - 1u)); }
fn quad_of(row: Row, i: u32) -> x_v {
    let tap = i / params.ci4;
    let dy = i32(tap / KW * params.dilation_h);
    let dx = i32(tap % KW * params.dilation_w);
    return input_at(row, dy, dx, i - tap * params.ci4);
}
$$ endif

// Four channels of each row.
struct acc_v {
    $$ for r in range(rows)
    s{{ r }}: w_v,
    $$ endfor
}
fn start() -> acc_v { return acc_v(); }
fn combine(a: acc_v, b: acc_v) -> acc_v {
    return acc_v(
        $$ for r in range(rows)
        a.s{{ r }} + b.s{{ r }},
        $$ endfor
    );
}
$$ if subgroups
fn subgroup_reduce(a: acc_v) -> acc_v {
    return acc_v(
        $$ for r in range(rows)
        subgroupAdd(a.s{{ r }}),
        $$ endfor
    );
}
$$ endif
{$ include "_workgroup_reduce.wgsl" $}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = group.x + group.y * groups.x;
    // What lies outside repeats the last pixel or channel and is not stored: no barrier may stand behind a return.
    let first = index / params.co4 * ROWS;
    let c4 = index % params.co4;
    let quads = TAPS * params.ci4;
    let at = min(4u * c4 + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.co - 1u)) * quads;
    $$ for r in range(rows)
    let row{{ r }} = row_at(first + {{ r }}u);
    $$ endfor
    var own = acc_v();
    for (var i = local; i < quads; i += WG) {
        let w0 = load4_w(at.x + i);
        let w1 = load4_w(at.y + i);
        let w2 = load4_w(at.z + i);
        let w3 = load4_w(at.w + i);
        $$ if gated
        let gate = load4_gate(i);
        $$ endif
        $$ for r in range(rows)
        $$ if lifted
        let x{{ r }} = quad_of(row{{ r }}, i) * gate + load4_addend(row{{ r }} + i);
        $$ elif gated
        let x{{ r }} = quad_of(row{{ r }}, i) * gate;
        $$ else
        let x{{ r }} = quad_of(row{{ r }}, i);
        $$ endif
        own.s{{ r }} += w_v(dot(x{{ r }}, w0), dot(x{{ r }}, w1), dot(x{{ r }}, w2), dot(x{{ r }}, w3));
        $$ endfor
    }
    let sums = workgroup_reduce(own, local);

    // Invocation r stores row r.
    var sum = sums.s0;
    $$ for r in range(1, rows)
    if (local == {{ r }}u) { sum = sums.s{{ r }}; }
    $$ endfor
    if (local < ROWS) { put(first + local, c4, sum); }
}

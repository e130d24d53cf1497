// layer_norm: each row less its mean (RMS norm: as it is), over the root of its mean square; a workgroup a row.
//
//   x, y [ROWS, D] float32; scale, bias [D]
//   READS: quads of a row that an invocation keeps in registers, or 0 for rows that are no whole quads or too long
//   Dispatch: (ROWS) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const READERS: u32 = WG;

{$ include "_mean_and_squares.wgsl" $}
{$ include "_workgroup_reduce.wgsl" $}
{$ include "_each_workgroup.wgsl" $}

fn units() -> u32 { return params.rows; }
fn compute(row: u32, local: u32) {
    $$ if reads
    let quads = params.depth / 4u;
    let base = row * quads;
    $$ for r in range(reads)
    let inside{{ r }} = local + {{ r }}u * WG < quads;
    var x{{ r }} = vec4<f32>();
    if (inside{{ r }}) { x{{ r }} = load4_x(base + local + {{ r }}u * WG); }
    $$ endfor
    var own = start();
    $$ if centred
    // Of few elements the mean first, then the squares: a running mean would divide for each of them.
    var sum = vec4<f32>();
    $$ for r in range(reads)
    own.count += select(0.0, 4.0, inside{{ r }});
    sum += x{{ r }};
    $$ endfor
    own.mean = (sum.x + sum.y + sum.z + sum.w) / max(own.count, 1.0);
    $$ endif
    $$ for r in range(reads)
    {
        let apart = select(vec4<f32>(), x{{ r }} - own.mean, inside{{ r }});
        own.squares += dot(apart, apart);
    }
    $$ endfor
    let all = workgroup_reduce(own, local);
    let factor = 1.0 / sqrt(all.squares / f32(params.depth) + params.epsilon);
    $$ for r in range(reads)
    if (inside{{ r }}) {
        let q = local + {{ r }}u * WG;
        var v = (x{{ r }} - all.mean) * factor;
        $$ if scaled
        v *= load4_scale(q);
        $$ endif
        $$ if shifted
        v += load4_bias(q);
        $$ endif
        store4_y(base + q, v);
    }
    $$ endfor
    $$ else
    let base = row * params.depth;
    var own = start();
    for (var d = local; d < params.depth; d += WG) {
        let v = load_x(base + d);
        $$ if centred
        own = combine(own, acc_v(1.0, v, 0.0));
        $$ else
        own.squares += v * v;
        $$ endif
    }
    let all = workgroup_reduce(own, local);
    let factor = 1.0 / sqrt(all.squares / f32(params.depth) + params.epsilon);
    for (var d = local; d < params.depth; d += WG) {
        var v = (load_x(base + d) - all.mean) * factor;
        $$ if scaled
        v *= load_scale(d);
        $$ endif
        $$ if shifted
        v += load_bias(d);
        $$ endif
        store_y(base + d, v);
    }
    $$ endif
}

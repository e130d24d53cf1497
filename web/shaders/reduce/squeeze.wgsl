// squeeze: the means of an image's channels, and what one or two small products make of them, by one workgroup an image.
//
//   x [N, D, C]: means over D, or sums of parts, divided by `total`; ADDED: of x + z, z [N, D, C]; w [CH, C] with bias
//   b, clamped to low..high where CLAMPED; DEEP: v [CO, CH] with bias c; y [N, CO] after the last product's activation
//   (CO = CH unless DEEP)
//   Needs: C % 4 == 0, C / 4 <= WG; CH % 4 == 0 where DEEP.
//   Dispatch: (N) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const CHANNELS: u32 = {{ channels }}u;
const QUADS: u32 = CHANNELS / 4u;
const ROWS: u32 = WG / QUADS;
const HIDDEN: u32 = {{ hidden }}u;
{$ include "_activation.wgsl" $}
{$ include "_each_workgroup.wgsl" $}

var<workgroup> sums: array<vec4<f32>, WG>;
$$ if deep
// Numbers, not vectors: a store to a component may touch the whole vector.
var<workgroup> inside: array<f32, HIDDEN>;
$$ endif

$$ if has_c
fn shift(o: u32) -> f32 { return load_c(o); }
$$ else
fn shift(o: u32) -> f32 { return 0.0; }
$$ endif

fn units() -> u32 { return params.images; }

// One element of the first product; behind it `sums` holds the means.
fn hidden(o: u32) -> f32 {
    var sum = vec4<f32>(0.0);
    for (var q = 0u; q < QUADS; q++) { sum += sums[q] * load4_w(o * QUADS + q); }
    var v = dot(sum, vec4<f32>(1.0));
    $$ if has_b
    v += load_b(o);
    $$ endif
    $$ if clamped
    v = clamp(v, params.low, params.high);
    $$ endif
    return v;
}

fn compute(image: u32, local: u32) {
    let quad = local % QUADS;
    var sum = vec4<f32>(0.0);
    if (local < ROWS * QUADS) {
        for (var d = local / QUADS; d < params.depth; d += ROWS) {
            let at = (image * params.depth + d) * QUADS + quad;
            sum += load4_x(at){{ " + load4_z(at)" if added }};
        }
    }
    sums[local] = sum;
    workgroupBarrier();
    // In turns, each of half the rows that are left.
    for (var rows = ROWS; rows > 1u; rows = (rows + 1u) / 2u) {
        let upper = local + (rows + 1u) / 2u * QUADS;
        if (upper < rows * QUADS) { sums[local] += sums[upper]; }
        workgroupBarrier();
    }
    if (local < QUADS) { sums[local] /= params.total; }
    workgroupBarrier();
    $$ if deep
    for (var h = local; h < HIDDEN; h += WG) { inside[h] = hidden(h); }
    workgroupBarrier();
    for (var o = local; o < params.co; o += WG) {
        var total = vec4<f32>(0.0);
        for (var q = 0u; q < HIDDEN / 4u; q++) {
            let four = vec4<f32>(inside[4u * q], inside[4u * q + 1u], inside[4u * q + 2u], inside[4u * q + 3u]);
            total += four * load4_v(o * (HIDDEN / 4u) + q);
        }
        let v = dot(total, vec4<f32>(1.0)) + shift(o);
        store_y(image * params.co + o, activate(vec4<f32>(v)).x);
    }
    $$ else
    for (var o = local; o < params.co; o += WG) {
        store_y(image * params.co + o, activate(vec4<f32>(hidden(o))).x);
    }
    $$ endif
}

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
// Invocations that share an element of the first product.
const SLICES: u32 = {{ slices }}u;
{$ include "_activation.wgsl" $}
{$ include "_each_workgroup.wgsl" $}

var<workgroup> sums: array<vec4<f32>, WG>;
var<workgroup> parts: array<f32, WG>;
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

// A slice of an element of the first product; behind it `sums` holds the means.
fn part(o: u32, slice: u32) -> f32 {
    var sum = vec4<f32>(0.0);
    for (var q = slice; q < QUADS; q += SLICES) { sum += sums[q] * load4_w(o * QUADS + q); }
    return dot(sum, vec4<f32>(1.0));
}

// One element of the first product.
fn hidden(o: u32) -> f32 {
    $$ if slices > 1
    var v = parts[o * SLICES];
    for (var s = 1u; s < SLICES; s++) { v += parts[o * SLICES + s]; }
    $$ else
    var v = part(o, 0u);
    $$ endif
    $$ if has_b
    v += load_b(o);
    $$ endif
    $$ if clamped
    v = clamp(v, params.low, params.high);
    $$ endif
    return v;
}

// A quad of pixel d.
fn pixel(first: u32, d: u32) -> vec4<f32> {
    let at = first + d * QUADS;
    $$ if added
    return load4_x(at) + load4_z(at);
    $$ else
    return load4_x(at);
    $$ endif
}

fn compute(image: u32, local: u32) {
    let quad = local % QUADS;
    var sum = vec4<f32>(0.0);
    if (local < ROWS * QUADS) {
        let first = image * params.depth * QUADS + quad;
        var d = local / QUADS;
        for (; d + 3u * ROWS < params.depth; d += 4u * ROWS) { // four loads under way at a time
            sum += pixel(first, d) + pixel(first, d + ROWS) + pixel(first, d + 2u * ROWS) + pixel(first, d + 3u * ROWS);
        }
        for (; d < params.depth; d += ROWS) { sum += pixel(first, d); }
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
    $$ if slices > 1
    if (local < HIDDEN * SLICES) { parts[local] = part(local / SLICES, local % SLICES); }
    workgroupBarrier();
    $$ endif
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

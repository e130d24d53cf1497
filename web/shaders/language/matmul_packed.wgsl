// matmul_packed: a product of real numbers with weights that stay packed in 4 or 8 bits; eight invocations share a sum.
//
//   x       [rows, K]                 read in quads where K % 4 == 0, else one by one
//   w       [words of a row, CO]      each word holds 8 / (BITS / 4) weights of one channel, laid out at load
//   scales  [CO, blocks]              read; a weight is (stored - zero) * scale of its block
//   zeros   [CO, blocks]              read, or half of the range where there are none
//   bias    [CO] if has_bias          y  [rows, CO]  written one by one
//   Needs: a block holds whole words.
//   A workgroup computes four rows by eight quads of channels: invocation = (slice of the sum, quad).
//   Dispatch: (ceil(rows/4) * ceil(CO/4 / 8)) workgroups

{{ prelude }}
const WG: u32 = 64u;
const SLICES: u32 = 8u;
const QUADS: u32 = 8u;
const TILE: u32 = 4u;
const BITS: u32 = {{ bits }}u;
const WEIGHTS: u32 = 32u / BITS; // in a word

var<workgroup> partial: array<vec4<f32>, 256>;

// Four neighbours of row r's sum from step k on; what lies behind the last counts as 0.
fn quad(r: u32, k: u32) -> vec4<f32> {
    $$ if quads
    if (k >= params.k) { return vec4<f32>(); }
    return load4_x((r * params.k + k) / 4u);
    $$ else
    var v = vec4<f32>();
    for (var lane = 0u; lane < 4u; lane++) {
        if (k + lane < params.k) { v[lane] = load_x(r * params.k + k + lane); }
    }
    return v;
    $$ endif
}

// Weight `at` of the words of four channels.
fn weight(words: vec4<u32>, at: u32) -> vec4<f32> {
    return vec4<f32>((words >> vec4<u32>(BITS * at)) & vec4<u32>((1u << BITS) - 1u));
}

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let columns = (params.co + 3u) / 4u;
    let tiles = (columns + QUADS - 1u) / QUADS;
    let index = group.x + group.y * groups.x;
    // What lies outside repeats the last row or channel and is not stored: no barrier may stand behind a return.
    let first = index / tiles * TILE;
    let wanted = index % tiles * QUADS + local % QUADS;
    let c = min(4u * wanted + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.co - 1u));
    let slice = local / QUADS;
    let row = min(vec4<u32>(first) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.pixels - 1u));
    var s0 = vec4<f32>();
    var s1 = vec4<f32>();
    var s2 = vec4<f32>();
    var s3 = vec4<f32>();
    for (var i = slice; i < params.words; i += SLICES) {
        let at = c * params.blocks + i * WEIGHTS / params.block;
        let scale = vec4<f32>(load_scales(at.x), load_scales(at.y), load_scales(at.z), load_scales(at.w));
        $$ if has_zeros
        let zero = vec4<f32>(load_zeros(at.x), load_zeros(at.y), load_zeros(at.z), load_zeros(at.w));
        $$ else
        let zero = vec4<f32>(f32(1u << (BITS - 1u)));
        $$ endif
        let start = i * params.co;
        let words = vec4<u32>(load_w(start + c.x), load_w(start + c.y), load_w(start + c.z), load_w(start + c.w));
        for (var part = 0u; part < WEIGHTS; part += 4u) {
            let x0 = quad(row.x, i * WEIGHTS + part);
            let x1 = quad(row.y, i * WEIGHTS + part);
            let x2 = quad(row.z, i * WEIGHTS + part);
            let x3 = quad(row.w, i * WEIGHTS + part);
            for (var lane = 0u; lane < 4u; lane++) {
                let v = (weight(words, part + lane) - zero) * scale;
                s0 += x0[lane] * v;
                s1 += x1[lane] * v;
                s2 += x2[lane] * v;
                s3 += x3[lane] * v;
            }
        }
    }
    partial[local] = s0;
    partial[local + WG] = s1;
    partial[local + 2u * WG] = s2;
    partial[local + 3u * WG] = s3;
    workgroupBarrier();

    // Invocation (t, quad) of the first half adds the slices of row t.
    if (slice >= TILE || first + slice >= params.pixels) { return; }
    var sum = vec4<f32>();
    for (var s = 0u; s < SLICES; s++) { sum += partial[slice * WG + s * QUADS + local % QUADS]; }
    for (var lane = 0u; lane < 4u; lane++) {
        let column = 4u * wanted + lane;
        if (column >= params.co) { return; }
        $$ if has_bias
        store_y((first + slice) * params.co + column, sum[lane] + load_bias(column));
        $$ else
        store_y((first + slice) * params.co + column, sum[lane]);
        $$ endif
    }
}

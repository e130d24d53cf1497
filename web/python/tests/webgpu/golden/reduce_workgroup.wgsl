// reduce_workgroup: one workgroup reduces one row of x together, for long rows and few results.
//
//   x [ROWS, D] read in quads, y [ROWS] of a 32-bit type
//   Needs: D % 4 == 0.
//   Dispatch: (ROWS) workgroups

enable subgroups;
// Generated from the lowering's signature.
@group(0) @binding(0) var<storage, read> x_words: array<vec4<f32>>;
alias x_t = f32;
alias x_v = vec4<f32>;
fn load_x(i: u32) -> f32 { return x_words[i >> 2u][i & 3u]; }
fn load4_x(q: u32) -> vec4<f32> { return x_words[q]; }
@group(0) @binding(1) var<storage, read_write> y_words: array<f32>;
alias y_t = f32;
alias y_v = vec4<f32>;
fn store4_y(q: u32, v: vec4<f32>) { y_words[4u * q] = v.x; y_words[4u * q + 1u] = v.y; y_words[4u * q + 2u] = v.z; y_words[4u * q + 3u] = v.w; }
fn store_y(i: u32, v: f32) { y_words[i] = v; }
struct Params {
    rows: u32,
    reduced: u32,
}
@group(0) @binding(2) var<uniform> params: Params;
const WG: u32 = 64u;
// _reduce_together: what workgroups need of which each reduces one unit of y together, by `compute(unit, local)`.
//
//   Needs: as _each_workgroup; `workgroup_reduce` gives the result to the first invocation.

const READERS: u32 = 1u;
// _reduce: what a reduction does with each element. acc_v holds four running results.
//
//   x_v four elements of x; start(), step(acc, x), combine(acc, acc) merges two partial results, across(acc) the
//   four of one, keep(acc, next, lanes) takes some lanes over; finish(acc) of params.reduced elements

// (largest so far, sum of e^(x - largest)) in one pass.
struct acc_v { top: vec4<f32>, sum: vec4<f32> }
fn start() -> acc_v { return acc_v(vec4<f32>(-3.4028234663852886e38), vec4<f32>(0.0)); }
fn combine(a: acc_v, b: acc_v) -> acc_v {
    let top = max(a.top, b.top);
    return acc_v(top, a.sum * exp(a.top - top) + b.sum * exp(b.top - top));
}
fn step(a: acc_v, x: x_v) -> acc_v { return combine(a, acc_v(x, vec4<f32>(1.0))); }
fn across(a: acc_v) -> acc_v {
    let top = max(max(a.top.x, a.top.y), max(a.top.z, a.top.w));
    return acc_v(vec4<f32>(top), vec4<f32>(dot(a.sum * exp(a.top - top), vec4<f32>(1.0))));
}
fn finish(a: acc_v) -> y_v { return a.top + log(a.sum); }
fn keep(a: acc_v, next: acc_v, lanes: vec4<bool>) -> acc_v {
    return acc_v(select(a.top, next.top, lanes), select(a.sum, next.sum, lanes));
}
// _reduce_subgroup: `subgroup_reduce(acc)` combines the partial results of a subgroup, for each of its invocations.

fn subgroup_reduce(a: acc_v) -> acc_v {
    let top = subgroupMax(a.top);
    return acc_v(top, subgroupAdd(a.sum * exp(a.top - top)));
}
// _workgroup_reduce: `workgroup_reduce(own, local)` combines the values of all invocations of a workgroup.
//
//   The first READERS invocations get the result. acc_v, its neutral value start(), combine(acc, acc) and
//   subgroup_reduce(acc) are the includer's.  Needs: WG is a power of two.
//   With subgroups one value of each passes workgroup memory, else all do, in a tree. How many invocations a subgroup
//   has and which ones is left to the device: the least local index of each marks where its value lies.
//   Call it once, in uniform control flow.

var<workgroup> partial: array<acc_v, WG>;
var<workgroup> marks: array<atomic<u32>, (WG + 31u) / 32u>;

fn workgroup_reduce(own: acc_v, local: u32) -> acc_v {
    // Not all drivers clear workgroup memory; and the barrier brings subgroups together again behind a loop.
    if (local % 32u == 0u) { atomicStore(&marks[local / 32u], 0u); }
    workgroupBarrier();
    let part = subgroup_reduce(own);
    let place = subgroupMin(local);
    if (local == place) {
        partial[local] = part;
        atomicOr(&marks[local / 32u], 1u << (local % 32u));
    }
    workgroupBarrier();
    var all = start();
    if (local >= READERS) { return all; }
    for (var word = 0u; word < (WG + 31u) / 32u; word++) {
        var bits = atomicLoad(&marks[word]);
        while (bits != 0u) {
            all = combine(all, partial[32u * word + firstTrailingBit(bits)]);
            bits &= bits - 1u;
        }
    }
    return all;
}
// _each_workgroup: main() of shaders whose workgroups each compute one unit of y together by `compute(unit, local)`.
//
//   Needs: fn compute(unit: u32, local: u32), fn units() -> u32, const WG.
//   Dispatch: (units()) workgroups, which may go on in y

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    // Spare workgroups of a folded dispatch repeat the last unit: no barrier may stand behind a return.
    compute(min(group.x + group.y * groups.x, units() - 1u), local);
}

fn units() -> u32 { return params.rows; }
fn compute(row: u32, local: u32) {
    let quads = params.reduced / 4u;
    var acc = start();
    for (var q = local; q < quads; q += WG) { acc = step(acc, load4_x(row * quads + q)); }
    let all = workgroup_reduce(acc, local);
    if (local == 0u) { store_y(row, finish(across(all)).x); }
}

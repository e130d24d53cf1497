// arg_extreme_workgroup: one workgroup finds the first largest (or smallest) element of four lines together; a NaN
// counts as extreme.
//
//   x [O, D, I], y [O, I] integers, written in quads
//   Dispatch: (ceil(O*I / 4)) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const READERS: u32 = 1u;

// Bits that grow with the number; both zeros are one number.
$$ if kind == "float"
fn rank(v: x_t) -> u32 {
    let bits = select(bitcast<u32>(v), 0u, v == 0.0);
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}
fn is_nan(v: x_t) -> bool { return (bitcast<u32>(v) & 0x7fffffffu) > 0x7f800000u; }
$$ elif kind == "signed"
fn rank(v: x_t) -> u32 { return bitcast<u32>(v) ^ 0x80000000u; }
fn is_nan(v: x_t) -> bool { return false; }
$$ else
fn rank(v: x_t) -> u32 { return v; }
fn is_nan(v: x_t) -> bool { return false; }
$$ endif

// Of each line: the rank of the best element, which is the largest one, and its place.
struct acc_v { rank: vec4<u32>, at: vec4<u32> }
fn start() -> acc_v { return acc_v(vec4<u32>(0u), vec4<u32>(0xffffffffu)); }
fn combine(a: acc_v, b: acc_v) -> acc_v {
    let second = (b.rank > a.rank) | ((b.rank == a.rank) & (b.at < a.at));
    return acc_v(select(a.rank, b.rank, second), select(a.at, b.at, second));
}
$$ if subgroups
fn subgroup_reduce(a: acc_v) -> acc_v {
    let best = subgroupMax(a.rank);
    return acc_v(best, subgroupMin(select(vec4<u32>(0xffffffffu), a.at, a.rank == best)));
}
$$ endif
{$ include "_workgroup_reduce.wgsl" $}
{$ include "_each_workgroup.wgsl" $}

fn rank_at(i: u32) -> u32 {
    let v = load_x(i);
    $$ if largest
    return select(rank(v), 0xffffffffu, is_nan(v));
    $$ else
    return select(~rank(v), 0xffffffffu, is_nan(v));
    $$ endif
}

fn units() -> u32 { return (params.count + 3u) / 4u; }
fn compute(quad: u32, local: u32) {
    let line = min(4u * quad + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(params.count - 1u));
    let base = line / params.inner * params.depth * params.inner + line % params.inner;
    var own = start();
    for (var d = local; d < params.depth; d += WG) {
        let i = base + d * params.inner;
        own = combine(own, acc_v(vec4<u32>(rank_at(i.x), rank_at(i.y), rank_at(i.z), rank_at(i.w)), vec4<u32>(d)));
    }
    let all = workgroup_reduce(own, local);
    if (local == 0u) { store4_y(quad, y_v(all.at)); }
}

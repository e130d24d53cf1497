// moments: the means of lines of x and their mean squared deviations; of parts of lines first, then of what the parts gave.
//
//   x [O, D, I], lines along D cut into P parts of PART, the last one shorter; mean and spread [O, P, I]
//   JOINS: x and s are means and sums of squared deviations of D parts, which stand for `unit` elements each of `total`
//   LAST: spread is the mean of the squares, not their sum
//   QUADS: four neighbouring lines lie in one quad of x (I % 4 == 0)
//   Dispatch: (O * P * ceil(I / 4)) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const READERS: u32 = WG;
alias acc_v = vec4<f32>;
{$ include "_sum.wgsl" $}
{$ include "_workgroup_reduce.wgsl" $}
{$ include "_each_workgroup.wgsl" $}

const LANES = vec4<u32>(0u, 1u, 2u, 3u);

fn units() -> u32 { return params.count; }

// The elements that position d of a line stands for.
fn weight(d: u32) -> f32 { return f32(min(params.unit, params.total - d * params.unit)); }

fn at(row: u32, quad: u32) -> vec4<f32> {
    $$ if quads
    return load4_x(row / 4u + quad);
    $$ else
    let i = row + min(4u * quad + LANES, vec4<u32>(params.inner - 1u));
    return vec4<f32>(load_x(i.x), load_x(i.y), load_x(i.z), load_x(i.w));
    $$ endif
}

fn rest(row: u32, quad: u32) -> vec4<f32> {
    $$ if not joins
    return vec4<f32>(0.0);
    $$ elif quads
    return load4_s(row / 4u + quad);
    $$ else
    let i = row + min(4u * quad + LANES, vec4<u32>(params.inner - 1u));
    return vec4<f32>(load_s(i.x), load_s(i.y), load_s(i.z), load_s(i.w));
    $$ endif
}

fn compute(number: u32, local: u32) {
    let across = (params.inner + 3u) / 4u;
    let quad = number % across;
    let part = number / across % params.parts;
    let outer = number / across / params.parts;
    let begin = part * params.part;
    let end = min(begin + params.part, params.depth);
    let elements = f32(min(end * params.unit, params.total) - begin * params.unit);
    var sum = vec4<f32>(0.0);
    for (var d = begin + local; d < end; d += WG) {
        sum += weight(d) * at((outer * params.depth + d) * params.inner, quad);
    }
    let middle = workgroup_reduce(sum, local) / elements;
    workgroupBarrier();
    var squares = vec4<f32>(0.0);
    for (var d = begin + local; d < end; d += WG) {
        let row = (outer * params.depth + d) * params.inner;
        let apart = at(row, quad) - middle;
        squares += rest(row, quad) + weight(d) * apart * apart;
    }
    var around = workgroup_reduce(squares, local);
    $$ if last
    around /= elements;
    $$ endif
    if (local == 0u) {
        let row = (outer * params.parts + part) * params.inner;
        for (var lane = 0u; lane < 4u; lane++) {
            if (4u * quad + lane < params.inner) {
                store_mean(row + 4u * quad + lane, middle[lane]);
                store_spread(row + 4u * quad + lane, around[lane]);
            }
        }
    }
}

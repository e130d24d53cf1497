// group_moments: the mean of each group of channels of an image and one over its deviation, of what parts of the image gave.
//
//   x, s    [N, PARTS, C]  means of channels, and their sums of squared deviations, over `part` pixels, the last part fewer
//   scale   [C], if `scaled`
//   mean    [N, C]         of the group of the channel
//   factor  [N, C]         1 / sqrt(variance of the group + epsilon), times the scale
//   Dispatch: (N * GROUPS) workgroups

{{ prelude }}
const WG: u32 = {{ workgroup }}u;
const READERS: u32 = WG;

{$ include "_mean_and_squares.wgsl" $}
{$ include "_workgroup_reduce.wgsl" $}
{$ include "_each_workgroup.wgsl" $}

fn units() -> u32 { return params.images * params.groups; }
fn compute(unit: u32, local: u32) {
    let image = unit / params.groups;
    let size = params.channels / params.groups;
    let first = unit % params.groups * size;
    var own = start();
    for (var i = local; i < params.parts * size; i += WG) {
        let part = i / size;
        let at = (image * params.parts + part) * params.channels + first + i % size;
        let pixels = min(params.part, params.pixels - part * params.part);
        own = combine(own, acc_v(f32(pixels), load_x(at), load_s(at)));
    }
    let all = workgroup_reduce(own, local);
    let factor = 1.0 / sqrt(all.squares / all.count + params.epsilon);
    for (var c = local; c < size; c += WG) {
        store_mean(image * params.channels + first + c, all.mean);
        $$ if scaled
        store_factor(image * params.channels + first + c, factor * load_scale(first + c));
        $$ else
        store_factor(image * params.channels + first + c, factor);
        $$ endif
    }
}

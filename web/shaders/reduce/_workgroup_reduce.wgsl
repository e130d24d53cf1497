// _workgroup_reduce: `workgroup_reduce(own, local)` combines the values of all invocations of a workgroup.
//
//   The first READERS invocations get the result. acc_v, its neutral value start(), combine(acc, acc) and
//   subgroup_reduce(acc) are the includer's.  Needs: WG is a power of two.
//   With subgroups one value of each passes workgroup memory, else all do, in a tree. How many invocations a subgroup
//   has and which ones is left to the device: the least local index of each marks where its value lies.
//   Call it once, in uniform control flow.

var<workgroup> partial: array<acc_v, WG>;
$$ if subgroups
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
$$ else
fn workgroup_reduce(own: acc_v, local: u32) -> acc_v {
    partial[local] = own;
    workgroupBarrier();
    for (var half = WG / 2u; half > 0u; half /= 2u) {
        if (local < half) { partial[local] = combine(partial[local], partial[local + half]); }
        workgroupBarrier();
    }
    return partial[0];
}
$$ endif

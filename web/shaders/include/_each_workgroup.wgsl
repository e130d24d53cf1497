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

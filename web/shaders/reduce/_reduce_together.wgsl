// _reduce_together: what workgroups need of which each reduces one unit of y together, by `compute(unit, local)`.
//
//   Needs: as _each_workgroup; `workgroup_reduce` gives the result to the first invocation.

const READERS: u32 = 1u;
{$ include "_reduce.wgsl" $}
$$ if subgroups
{$ include "_reduce_subgroup.wgsl" $}
$$ endif
{$ include "_workgroup_reduce.wgsl" $}
{$ include "_each_workgroup.wgsl" $}

// _best: `best_of(own, local)`: of the candidates of all invocations the one with the largest score, of equals the one
// with the least place. Every invocation gets it.
//
//   Call it in uniform control flow, as often as you like.  Needs: WG is a power of two.

struct Candidate { score: f32, place: u32 }
var<workgroup> candidates: array<Candidate, WG>;

fn best_of(own: Candidate, local: u32) -> Candidate {
    candidates[local] = own;
    for (var half = WG / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (local < half) {
            let a = candidates[local];
            let b = candidates[local + half];
            if (b.score > a.score || (b.score == a.score && b.place < a.place)) { candidates[local] = b; }
        }
    }
    return workgroupUniformLoad(&candidates[0]);
}

// The values of a weight, below the details of the node that reads it.

import { byId } from "../../ui/dom.js";
import { valueCard } from "./model_outputs.js";

let turn = 0; // of the weight that was asked for: another node may be chosen before it comes

/** Shows what the engine's answer to "weights" promises. */
export async function showWeights(promised) {
  const own = ++turn;
  const { buffers, ...weight } = await promised;
  if (own !== turn) return;
  byId("weights").replaceChildren(valueCard({ ...weight, data: buffers[0] }));
  byId("weights").scrollIntoView({ block: "nearest" });
}

export function forgetWeights() {
  turn += 1;
  byId("weights").replaceChildren();
}

// Tasks that few packages have, loaded with the first package of one of them: {takes, found} by kind of `decode`.
// `takes(given)`: whether this is what the task is for, not tensors. `found(model, given, numbers)`: what is in it.

import { landmarks } from "./tasks/landmarks.js";
import { sounds } from "./tasks/sounds.js";

export const READERS = { landmarks, sounds };

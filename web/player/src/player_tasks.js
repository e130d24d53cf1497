// Tasks that few packages have, loaded with the first package of one of them: {takes, found} by kind of `decode`; and what
// follows things through films.
// `takes(given)`: whether this is what the task is for, not tensors. `found(model, given, numbers)`: what is in it.

import { files } from "./tasks/files.js";
import { filmOf } from "./tasks/films.js";
import { holistic } from "./tasks/holistic.js";
import { landmarks } from "./tasks/landmarks.js";
import { ocr } from "./tasks/ocr.js";
import { sounds } from "./tasks/sounds.js";
import { speech } from "./tasks/speech.js";
import { sentences, texts } from "./tasks/texts.js";
import { middle, yolo } from "./tasks/yolo.js";

export { filmOf };

export const READERS = { files, holistic, landmarks, middle, ocr, sentences, sounds, speech, texts, yolo };

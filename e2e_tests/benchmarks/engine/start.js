// What the product's worker starts Python with: a benchmark's site has it in one file, with SITE behind it.

import { Downloads } from "../../../web/static/downloads.js";
import { GPU } from "../../../web/static/gpu.js";
import { Prefetch } from "../../../web/static/prefetch.js";
import { beginEarly, bringRest, startPython } from "../../../web/static/python_start.js";

export { Downloads, GPU, Prefetch, beginEarly, bringRest, startPython };

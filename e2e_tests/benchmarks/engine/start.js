// What the product's worker starts Python with: a benchmark's site has it in one file, with SITE behind it.

import { Downloads } from "../../../web/static/startup/downloads.js";
import { GPU } from "../../../web/static/gpu/gpu.js";
import { Prefetch } from "../../../web/static/startup/prefetch.js";
import { beginEarly, bringRest, startPython } from "../../../web/static/startup/python_start.js";

export { Downloads, GPU, Prefetch, beginEarly, bringRest, startPython };

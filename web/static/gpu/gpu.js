// All that the engine does on a GPU, as the one thing that Python finds (host/gpu_browser.py).

import * as gpu_device from "./gpu_device.js";
import * as gpu_mask from "./gpu_mask.js";
import * as gpu_picture from "./gpu_picture.js";
import * as gpu_program from "./gpu_program.js";
import * as gpu_runs from "./gpu_runs.js";
import * as gpu_timing from "./gpu_timing.js";

export const GPU = { gpu_device, gpu_mask, gpu_picture, gpu_program, gpu_runs, gpu_timing };

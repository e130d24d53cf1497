// webinfer as its users get it who name no backend: in a page the first runs are on the one that is ready first.

import { start as begin } from "./webinfer.js";

export const start = (options) => begin({ ...options, backend: "auto" });

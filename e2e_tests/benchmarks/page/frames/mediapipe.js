// One of MediaPipe's packages for pages, as a page uses it: on the page's own thread, its graph on WebGL or the processor.

import { deadline } from "../remote.js";

/** Loads a package's script; what it offers is on `self` then. */
function script(url) {
  return new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement("script"), { src: url, onload: resolve });
    element.onerror = () => reject(new Error(`${url} could not be loaded`));
    document.head.append(element);
  });
}

/** A task of MediaPipe's. */
export class MediaPipe {
  shown = null; // the mask that is seen until the next one comes
  #graph;
  #count = 0;

  async open({ mediapipe: { folder, name, options, counted } }, { backend }) {
    const at = (file) => new URL(`../rivals/mediapipe/${folder}/${file}`, import.meta.url).href;
    await script(at(`${folder}.js`));
    this.#graph = new self[name]({ locateFile: at });
    this.#graph.setOptions({ ...options, useCpuInference: backend === "wasm" });
    this.#graph.onResults((results) => {
      const masked = counted === "segmentationMask";
      this.#count = masked ? Number(Boolean(results[counted])) : this.#length(results[counted]);
      if (masked) this.shown = results[counted];
    });
    await deadline("initialize", this.#graph.initialize());
    return `@mediapipe/${folder}`;
  }

  #length(found) {
    if (!found) return 0;
    return Array.isArray(found[0]) ? found.length : 1;
  }

  /** {found: how many things are in the frame}. */
  async look(video) {
    await deadline("send", this.#graph.send({ image: video }));
    return { found: this.#count };
  }

  end() {
    this.#graph?.close();
  }
}

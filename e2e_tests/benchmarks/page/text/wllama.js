// wllama, which is llama.cpp in WebAssembly, as a page uses it: from the page's own thread, at work in a worker of its own.

import { deadline } from "../remote.js";

/** A model that is open in wllama. */
export class Wllama {
  #llama;

  async open({ backend, threads }, model) {
    const rival = new URL("../rivals/wllama/", import.meta.url);
    const { Wllama: Rival, LoggerWithoutDebug } = await import(new URL("index.js", rival));
    this.#llama = new Rival({ default: new URL("wllama.wasm", rival).href }, { logger: LoggerWithoutDebug, suppressNativeLog: true });
    if (backend === "webgpu" && !this.#llama.isSupportWebGPU()) throw new Error("wllama finds no WebGPU here");
    const begin = performance.now();
    await deadline("loadModel", this.#llama.loadModel([model], { n_threads: threads, n_ctx: 2048, n_gpu_layers: backend === "webgpu" ? 999 : 0, warmup: true }));
    if (this.#llama.getNumThreads() !== threads) throw new Error(`wllama runs ${this.#llama.getNumThreads()} threads`);
    return { version: `@wllama/wllama, llama.cpp ${Rival.getLibllamaVersion()}`, load_ms: performance.now() - begin };
  }

  /** As webinfer's: by wllama's own clocks, which leave the ways of messages out. */
  async write(prompt, tokens) {
    const asked = { prompt, max_tokens: tokens, temperature: 0, cache_prompt: false };
    const { choices, timings } = await deadline("createCompletion", this.#llama.createCompletion(asked));
    if (!timings) throw new Error("wllama tells no times");
    if (timings.cache_n) throw new Error(`wllama remembered ${timings.cache_n} tokens of the prompt`);
    return {
      prompt_words: timings.prompt_n, prompt_ms: timings.prompt_ms, tokens: timings.predicted_n,
      answer_ms: timings.predicted_ms, text: choices[0].text,
    };
  }

  end() {
    this.#llama?.exit().catch(() => {});
  }
}

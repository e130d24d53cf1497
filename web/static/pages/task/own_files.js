// Files of the user's own that a task is made of: a model, and what it needs beside.

import { fetchedFile } from "../../startup/sample_file.js";

/**
 * The box of them; there is none on pages without. `open({files, options})` is called with bytes by the option of the task's
 * `create` once there is a model, and again when anything changes; `refuse(error)` hears of what cannot be read.
 */
export class OwnFiles {
  #files = {}; // {option: ArrayBuffer}
  #settings;
  #report;
  #open;
  #refuse;

  constructor({ settings, report, open, refuse }) {
    [this.#settings, this.#report, this.#open, this.#refuse] = [settings, report, open, refuse];
    for (const button of document.querySelectorAll("[data-pick]")) {
      button.addEventListener("click", () => document.querySelector(`[data-file=${button.dataset.pick}]`).click());
    }
    for (const input of document.querySelectorAll("[data-file]")) input.addEventListener("change", () => this.#take(input));
    document.querySelector("[data-labels]")?.addEventListener("change", () => this.#send());
  }

  /** What the user opened last goes on in an engine that was started again. */
  renew() {
    this.#send();
  }

  async #take(input) {
    const [file] = input.files;
    input.value = ""; // so that the same file can be chosen again
    if (!file) return;
    try {
      this.#files[input.dataset.file] = await file.arrayBuffer();
    } catch ({ message }) {
      return this.#refuse({ code: "input", message: `${file.name} cannot be read: ${message}` });
    }
    document.querySelector(`[data-told=${input.dataset.file}]`).textContent = `${file.name}, ${(file.size / 1e6).toFixed(1)} MB`;
    await this.#send();
  }

  /** Opens the model with what it needs; the site has what the user need not give. */
  async #send() {
    const asked = [...document.querySelectorAll("[data-file]")].map(({ dataset }) => dataset);
    if (!asked.every(({ file, usual, optional }) => this.#files[file] || usual || optional !== undefined)) return; // more are to come
    try {
      for (const { file, usual } of asked) {
        if (usual) this.#files[file] ??= await (await fetchedFile(usual, this.#settings, this.#report)).arrayBuffer();
      }
    } catch (error) {
      return this.#refuse({ code: error.code ?? "download", message: error.message });
    }
    const field = document.querySelector("[data-labels]");
    const labels = field?.value.split(",").map((label) => label.trim()).filter(Boolean) ?? [];
    this.#open({ files: { ...this.#files }, options: labels.length ? { [field.dataset.labels]: labels } : {} });
  }
}

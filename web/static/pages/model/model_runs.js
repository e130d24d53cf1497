// Runs of the model, the time of each node, and the comparison of two backends.

import { byId, say } from "../../ui/dom.js";
import { heatOf, showComparison, showProfile, timesOfNodes } from "./model_checks.js";
import { showWork } from "../../engine/engine_page.js";
import { Inputs } from "./model_inputs.js";
import { showOutputs } from "./model_outputs.js";

const TOLERANCE = 1e-3; // of a tensor's range
const TIMED = { count: 9, budget_ms: 800 }; // runs after the one that is shown

export class Runs {
  #calls;
  #troubles;
  #workspace;
  #titles;
  #model;
  #told;
  #inputs;

  /** `model` is the page's, `told(more)` hears what is to be said to scripts. */
  constructor({ calls, troubles, workspace, titles, model, told }) {
    [this.#calls, this.#troubles, this.#workspace, this.#titles, this.#model, this.#told] = [calls, troubles, workspace, titles, model, told];
    this.#inputs = new Inputs((error) => this.#fail(error));
    byId("run").addEventListener("click", () => this.#work("Running …", (backend) => this.#run(backend)));
    byId("measure").addEventListener("click", () => this.#work("Measuring …", (backend) => this.#measure(backend)));
    byId("verify").addEventListener("click", () => this.#work("Comparing …", (backend) => this.#verify(backend)));
    byId("stop").addEventListener("click", () => calls.stop());
  }

  /** The model can run. */
  ready(plan) {
    this.#inputs.show(plan.inputs);
    byId("run-box").hidden = false;
  }

  /** The backend that is chosen, or the one that can run the model. */
  get #backend() {
    const { plans } = this.#model;
    const chosen = document.querySelector("#backends input:checked").value;
    if (plans[chosen]?.graph) return chosen;
    const error = plans[chosen]?.error;
    throw Object.assign(new Error(error?.message ?? "The model is not compiled for it yet."), { code: error?.code ?? "input" });
  }

  async #work(text, work) {
    if (this.#calls.busy) return;
    const { told } = this.#model;
    this.#troubles.forget();
    this.#busy(true);
    showWork({}, text);
    try {
      const show = await work(this.#backend);
      if (told === this.#model.told) await show(); // or another model was opened meanwhile
    } catch (error) {
      say(byId("status"), error.code === "stopped" ? "Stopped." : "");
      if (error.code !== "stopped") this.#fail(error);
    } finally {
      this.#busy(false);
      showWork(null);
    }
  }

  #busy(yes) {
    for (const id of ["run", "measure", "verify"]) byId(id).setAttribute("aria-disabled", String(yes));
    byId("stop").hidden = !yes;
  }

  #fail(error) {
    this.#troubles.show({ code: error.code ?? "page", message: error.message });
  }

  #step(what) {
    return ({ done, total }) => showWork({ done, total }, `${what} ${done + 1} of ${total} …`);
  }

  async #run(backend) {
    const answer = await this.#calls.ask("run", { backend, ...this.#inputs.values });
    const { times } = await this.#calls.ask("time", { backend, ...TIMED });
    return () => this.#ran(backend, answer, times);
  }

  async #ran(backend, answer, times) {
    showOutputs(answer, times);
    const plan = this.#model.plans[backend];
    if (answer.parts !== plan.parts) { // data decided what runs: now that is known
      Object.assign(plan, await this.#calls.ask("graph", { backend }));
      this.#workspace.take(this.#model, true);
    }
    const outputs = answer.outputs.map(({ name, dtype, shape }) => ({ name, dtype, shape }));
    this.#told({ ran: { backend: answer.backend, ms: answer.ms, times, outputs } });
  }

  async #measure(backend) {
    const found = await this.#calls.ask("profile", { backend }, this.#step("Measuring, round"));
    return () => this.#profiled(backend, found);
  }

  #profiled(backend, found) {
    const { rows, graph } = this.#model.plans[backend];
    const times = timesOfNodes(rows, found.times);
    this.#workspace.profiled(backend, found.times, heatOf(times), times);
    showProfile(found, times, graph, this.#titles[backend], (view, node) => this.#workspace.show(view, node));
    say(byId("status"), "");
    this.#told({ profiled: { backend, steps: found.times.length, run_ms: found.run_ms } });
  }

  async #verify(backend) {
    const against = [...document.querySelectorAll("#backends input")].map(({ value }) => value).find((name) => name !== backend);
    const fields = { backend, against, tolerance: TOLERANCE, ...this.#inputs.values };
    const found = await this.#calls.ask("verify", fields, this.#step("Comparing node"));
    return () => this.#compared(backend, found);
  }

  #compared(backend, found) {
    this.#workspace.compared(found.differences);
    showComparison(found, this.#model.plans[backend].graph, TOLERANCE, (view, node) => this.#workspace.show(view, node));
    say(byId("status"), "");
    this.#told({ verified: { ok: found.ok, backend: found.backend, against: found.against, compared: found.differences.length } });
  }
}


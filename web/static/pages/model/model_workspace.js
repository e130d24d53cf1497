// The graph of a model, drawn and as a list, with its search and the details of a node.

import { keepInAddress } from "../../ui/address.js";
import { byId, counted, say } from "../../ui/dom.js";
import { saveGraph } from "./model_export.js";
import { drawingOf, Layouts } from "./model_drawing.js";
import { GraphView } from "./model_graph.js";
import { fits, NodeList } from "./model_list.js";
import { showEnd, showNode } from "./model_node.js";
import { palette } from "./model_paint.js";
import { forgetWeights, showWeights } from "./model_weights.js";

const parameters = new URLSearchParams(location.search);
const chosen = (group) => document.querySelector(`input[name=${group}]:checked`).value;

export class Workspace {
  #layouts;
  #titles;
  #view;
  #list;
  #model = null; // as model.js has it
  #graph = null; // that is shown
  #drawing = null;
  #matches = null; // nodes that fit the search
  #node = -1;
  #checks = {}; // {times: {backend: [ms]}, heat: Map, differences}
  #calls;
  #refuse;

  /** `calls` ask the engine for weights; `refuse(error)` hears what could not be shown or saved. */
  constructor(layoutAddress, titles, calls, refuse) {
    [this.#calls, this.#refuse] = [calls, refuse];
    this.#layouts = new Layouts(layoutAddress);
    this.#titles = titles;
    this.#view = new GraphView(byId("graph"), { select: (box) => this.#selectBox(box), open: () => byId("node-box").focus() });
    this.#list = new NodeList((node) => this.#select(node));
    byId("search").addEventListener("input", () => this.#searched());
    byId("search").addEventListener("keydown", (event) => event.key === "Enter" && this.#next(event.shiftKey ? -1 : 1));
    byId("views").addEventListener("change", () => this.#show());
    byId("forms").addEventListener("change", () => this.#formed());
    for (const kind of ["svg", "png"]) byId(`save-${kind}`).addEventListener("click", () => this.#save(kind));
    byId("zoom-in").addEventListener("click", () => this.#view.zoom(1));
    byId("zoom-out").addEventListener("click", () => this.#view.zoom(-1));
    byId("zoom-fit").addEventListener("click", () => this.#view.fit());
  }

  /** Another model is being opened. */
  begin(text) {
    [this.#model, this.#graph, this.#drawing, this.#matches, this.#node, this.#checks] = [null, null, null, null, -1, {}];
    byId("workspace").hidden = false;
    byId("stage").classList.add("small");
    byId("search").value = "";
    byId("legend").hidden = true;
    this.#view.clear();
    this.#list.show({ nodes: [], values: {} }, []);
    this.wait(text);
  }

  /** There is nothing to show. */
  end() {
    byId("workspace").hidden = true;
    byId("stage").classList.remove("small");
  }

  /** Says what is being waited for; "" for nothing. */
  wait(text) {
    byId("graph-wait").hidden = !text;
    say(byId("graph-wait"), text);
  }

  /**
   * Takes over what is known of the model now; `anew`: it can be drawn as it runs from now on. Until then it is shown as it
   * stands in the file, and stays so while the user searches it or looks at a node.
   */
  take(model, anew) {
    this.#model = model;
    const runs = Boolean(this.#run);
    const [run, file] = document.querySelectorAll("#views input");
    run.disabled = !runs;
    const turns = anew && this.#node < 0 && !byId("search").value;
    if (turns) (parameters.get("view") === "file" ? file : run).checked = true;
    else if (!runs) file.checked = true;
    if (turns || !this.#graph) return this.#show();
    if (this.#node >= 0) this.#details();
    this.#fillList();
  }

  /** Looks for nodes. */
  search(text) {
    byId("search").value = text;
    this.#searched();
    byId("search").focus();
  }

  /** Shows a node of a view ("run" or "file"). */
  async show(view, node) {
    if (view !== chosen("view")) {
      document.querySelector(`#views [value=${view}]`).checked = true;
      await this.#show();
    }
    this.#select(node);
    byId("node-box").scrollIntoView({ block: "nearest" });
  }

  /** Times of steps by backend, and a share of the longest for each node. */
  profiled(backend, steps, heat, times) {
    this.#checks = { ...this.#checks, times: { ...this.#checks.times, [backend]: steps }, heat, nodes: times };
    this.#coloured();
  }

  /** Differences between two backends. */
  compared(differences) {
    this.#checks = { ...this.#checks, differences };
    this.#coloured();
  }

  get #run() {
    return Object.values(this.#model?.plans ?? {}).find(({ graph }) => graph);
  }

  // ----- the graph

  async #show() {
    const { told } = this.#model;
    const view = chosen("view");
    this.#graph = view === "run" && this.#run ? this.#run.graph : told.outline;
    keepInAddress({ view: view === "file" && this.#run ? "file" : null });
    this.#node = -1;
    byId("node-box").hidden = true;
    delete document.documentElement.dataset.webinferGraph;
    this.#searched({ quiet: true });
    const graph = this.#graph;
    if (!this.#drawing) this.wait("Drawing …"); // else the file's graph is seen until then
    let drawing = null;
    try {
      drawing = await this.#layouts.arranged(drawingOf(graph));
    } catch (error) {
      this.wait(`The graph cannot be drawn: ${error.message}. The list shows all of it.`);
      return;
    }
    if (!drawing || graph !== this.#graph) return;
    this.#drawing = drawing;
    this.wait("");
    this.#view.show(drawing);
    this.#coloured();
    this.#highlight();
    document.documentElement.dataset.webinferGraph = String(drawing.boxes.length);
    const asked = parameters.get("view") ?? "run"; // an address without a view means the graph as it runs
    if (asked === view) this.#selectAsked();
  }

  /** Selects the node that the address names. */
  #selectAsked() {
    const node = Number(parameters.get("node") ?? -1);
    parameters.delete("node");
    if (Number.isInteger(node) && node >= 0 && node < this.#graph.nodes.length) this.#select(node);
  }

  /** No backend runs the model: the graph as it stands in the file is all that there is. */
  refused() {
    if (this.#drawing) this.#selectAsked();
  }

  /** Hands the graph that is shown out as a picture. */
  async #save(kind) {
    if (!this.#drawing) return;
    const colours = palette(byId("paper").querySelector("[data-probe]"));
    await saveGraph(this.#model.told.name, this.#drawing, colours, kind).catch(({ message }) => this.#refuse({ code: "page", message: `The picture cannot be made: ${message}` }));
  }

  #formed() {
    const drawn = chosen("form") === "graph";
    byId("paper").hidden = !drawn;
    byId("graph-keys").hidden = !drawn;
    byId("list").hidden = drawn;
    keepInAddress({ form: drawn ? null : "list" });
  }

  #coloured() {
    if (!this.#drawing) return;
    const { at } = this.#drawing;
    const { heat, differences = [] } = this.#checks;
    const runs = this.#graph === this.#run?.graph;
    this.#view.heat(runs && heat ? new Map([...heat].map(([node, share]) => [at[node], share])) : null);
    byId("legend").hidden = !(runs && heat);
    say(byId("legend"), "Coloured by time: the redder, the longer.");
    const marks = new Map();
    if (runs) for (const { node, within } of differences) if (!within) marks.set(at[node], "differs");
    for (const node of runs ? [] : this.#refused()) marks.set(at[node], "refused");
    this.#view.mark(marks);
    this.#fillList();
    if (this.#node >= 0) this.#details();
  }

  /** The operators of the file that the importer refused. */
  #refused() {
    const numbers = new Set(Object.values(this.#model.plans).flatMap(({ error }) => error?.operators ?? []));
    return this.#graph.nodes.flatMap(({ number }, node) => (numbers.has(number) ? [node] : []));
  }

  // ----- nodes

  #selectBox(box) {
    const found = this.#drawing.boxes[box];
    if (found?.kind === "op") return this.#select(found.node, false);
    this.#node = -1;
    this.#list.select(-1);
    byId("node-box").hidden = !found;
    forgetWeights();
    if (found) showEnd(found, this.#graph);
    say(byId("said"), found ? `${found.kind} ${found.title}` : "");
  }

  #select(node, center = true) {
    this.#node = node;
    this.#list.select(node);
    if (center && this.#drawing) this.#view.select(this.#drawing.at[node]);
    keepInAddress({ node });
    this.#details();
    const { op, outputs } = this.#graph.nodes[node];
    say(byId("said"), `${op}, ${this.#graph.values[outputs[0]]?.type ?? ""}, node ${node} of ${this.#graph.nodes.length}`);
  }

  /** Shows the values of a weight of the graph as it runs. */
  #weigh(key) {
    const [backend] = Object.entries(this.#model.plans).find(([, { graph }]) => graph);
    showWeights(this.#calls.ask("weights", { backend, key })).catch((error) => this.#refuse(error));
  }

  #details() {
    const { told, plans } = this.#model;
    forgetWeights();
    const error = Object.values(plans).find(({ error: found }) => found?.operators?.length)?.error;
    showNode(this.#node, {
      graph: this.#graph, view: this.#graph === this.#run?.graph ? "run" : "file", run: this.#run?.graph, file: told.outline,
      origins: this.#run?.origins, plans, titles: this.#titles, checks: this.#checks, error, show: (view, node) => this.show(view, node), weigh: (key) => this.#weigh(key),
    });
  }

  // ----- the search

  #searched({ quiet = false } = {}) {
    if (!this.#graph) return;
    const text = byId("search").value.trim().toLowerCase();
    const words = text.split(/\s+/).filter(Boolean);
    const { nodes, values } = this.#graph;
    this.#matches = words.length ? [...nodes.keys()].filter((node) => fits(nodes[node], values, words)) : null;
    say(byId("search-count"), this.#matches ? counted(this.#matches.length, "node") : "");
    if (!quiet) keepInAddress({ search: text || null });
    this.#highlight();
    this.#fillList();
  }

  #highlight() {
    this.#view.found(this.#drawing && this.#matches ? new Set(this.#matches.map((node) => this.#drawing.at[node])) : null);
  }

  #next(direction) {
    if (!this.#matches?.length) return;
    const at = this.#matches.indexOf(this.#node);
    const { length } = this.#matches;
    this.#select(this.#matches[at < 0 ? 0 : (at + direction + length) % length]);
  }

  #fillList() {
    if (!this.#graph) return;
    const runs = this.#graph === this.#run?.graph;
    const kernels = runs ? new Map() : null;
    if (runs) for (const { node, kernel } of this.#run.rows) kernels.set(node, kernels.has(node) ? `${kernels.get(node)}, …` : kernel);
    this.#list.show(this.#graph, this.#matches ?? [...this.#graph.nodes.keys()], { kernels, times: runs ? this.#checks.nodes : null });
    this.#list.select(this.#node);
  }
}

// What pages call models: by the task that one is for, and by its title there, as the server's table of demos has them.

const known = JSON.parse(document.documentElement.dataset.models ?? "{}");

const plain = (model) => model.replaceAll("_", " ");

/** The title of the task that a model is for. */
export const taskOf = (model) => known[model]?.[0] ?? "Other models";

/** What its task's page calls a model. */
export const titleOf = (model) => known[model]?.[1] || plain(model);

/** What a model is called where nothing says which task it is for. */
export const nameOf = (model) => (known[model]?.[1] ? known[model].join(": ") : plain(model));

/** The rows {name, …} by their tasks, in the order of the demos: [[task, rows]]; models of no task come last. */
export function byTask(rows) {
  const order = [...new Set(Object.values(known).map(([task]) => task)), taskOf("")];
  return order.map((task) => [task, rows.filter(({ name }) => taskOf(name) === task)]).filter(([, found]) => found.length);
}

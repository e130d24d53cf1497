// The sliders of a task's options, each with its value beside it.

const fields = () => document.querySelectorAll("[data-option]");
const say = (field) => (field.parentElement.querySelector("output").textContent = field.value);

/** Calls `chosen(name, value)` for each value that a slider is let go at. */
export function watchOptions(chosen) {
  for (const field of fields()) {
    field.addEventListener("input", () => say(field));
    field.addEventListener("change", () => chosen(field.dataset.option, field.valueAsNumber));
  }
}

/** Shows {name: value}; a value that no slider can have becomes the nearest that it can. */
export function showOptions(options) {
  for (const field of fields()) {
    field.value = options[field.dataset.option];
    say(field);
  }
}

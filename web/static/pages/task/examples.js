// Pictures to try, below the stage. They come behind the page's first result, whose time they would take.

import { byId } from "../../ui/dom.js";

/** Shows them; `use(file)` gets the one that is pressed. */
export function showExamples(use) {
  byId("examples")?.replaceWith(byId("examples").content);
  for (const button of document.querySelectorAll("[data-example]")) {
    button.addEventListener("click", async () => {
      const picture = button.querySelector("img");
      const answer = await fetch(picture.src);
      if (answer.ok) use(new File([await answer.blob()], `${picture.alt}.webp`, { type: "image/webp" }));
    });
  }
}

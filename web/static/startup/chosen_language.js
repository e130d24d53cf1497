// In every page, behind its menu: the language that was chosen here, else the browser's. English needs nothing more.
(() => {
  const KEY = "webinfer language";
  const HELD_MS = 2_000; // the longest that nothing is shown, so that no text is exchanged, and nothing moved, before a reader's eyes
  const root = document.documentElement;
  const button = document.getElementById("language");
  const show = (language) => {
    const entries = language === "en" ? null : fetch(button.dataset.catalogue).then((answer) => answer.json()); // beside the script
    entries?.catch(() => {}); // the script says it
    return import(new URL(button.dataset.script, location.href).href).then((script) => script.show(language, button, entries));
  };
  let kept = null;
  try {
    kept = localStorage.getItem(KEY);
  } catch {} // a page that may store nothing
  button.addEventListener("click", () => {
    const next = root.lang === "en" ? button.dataset.language : "en";
    try {
      localStorage.setItem(KEY, next);
    } catch {}
    show(next);
  });
  const wanted = kept ?? (navigator.language.split("-")[0] === button.dataset.language ? button.dataset.language : "en");
  if (wanted === "en") return;
  const reveal = () => root.classList.remove("translating");
  root.classList.add("translating");
  setTimeout(reveal, HELD_MS);
  show(wanted).finally(reveal);
})();

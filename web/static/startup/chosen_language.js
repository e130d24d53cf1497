// In every page, behind its menu: the language that was chosen here, else the browser's. English needs nothing more.
(() => {
  const KEY = "webinfer language";
  const button = document.getElementById("language");
  const show = (language) => import(new URL(button.dataset.script, location.href).href).then((script) => script.show(language, button));
  let kept = null;
  try {
    kept = localStorage.getItem(KEY);
  } catch {} // a page that may store nothing
  button.addEventListener("click", () => {
    const next = document.documentElement.lang === "en" ? button.dataset.language : "en";
    try {
      localStorage.setItem(KEY, next);
    } catch {}
    show(next);
  });
  const wanted = kept ?? (navigator.language.split("-")[0] === button.dataset.language ? button.dataset.language : "en");
  if (wanted !== "en") show(wanted);
})();

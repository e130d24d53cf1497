// In exported pages: says why a page shows nothing of its own where the script in the page's text (first.js) is refused, and how
// to serve a page without one that was opened as a file.

{
  const NEEDED = "script-src 'self' 'wasm-unsafe-eval' 'unsafe-inline'; worker-src 'self'; connect-src 'self'";
  const box = document.getElementById("unstarted");
  const { dataset } = document.documentElement;
  if (box && !globalThis.firstRuns) {
    const why = "The security policy of this address (Content-Security-Policy, script-src) refuses the script in this page’s text.";
    box.querySelector("p").textContent = `${why} The server’s operator has to give this address ${NEEDED}, or no policy: the page brings its own.`;
    for (const animation of box.getAnimations()) animation.finish();
    dataset.state = "failed";
    dataset.webinferError = JSON.stringify({ code: "policy", message: why });
    document.getElementById("loading").hidden = true;
  } else if (!box && location.protocol === "file:") {
    const told = document.createElement("p");
    told.className = "message";
    told.setAttribute("role", "alert");
    told.textContent = "This page was opened as a file; browsers cannot run its modules from files. Serve its folder, for instance with “python3 -m http.server --directory FOLDER”, and open the address that it prints.";
    document.body.prepend(told);
  }
}

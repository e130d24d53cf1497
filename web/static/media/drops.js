// Files that are dropped anywhere on the page, or pasted.

/** Calls `take(dataTransfer)` for each drop; `zone` has the class "dropping" while files are held over the page. */
export function watchDrops(zone, take) {
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  let depth = 0; // dragenter and dragleave also come from every child
  const mark = (by) => {
    depth = by ? Math.max(0, depth + by) : 0;
    zone.classList.toggle("dropping", depth > 0);
  };
  addEventListener("dragenter", (event) => hasFiles(event) && mark(1));
  addEventListener("dragleave", (event) => hasFiles(event) && mark(-1));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault(); // or the browser would leave the page for the file
    mark(0);
    take(event.dataTransfer);
  });
}

/** Calls `take(files)` for the files that are dropped or pasted on the page, `refuse(error)` for what is not a file. */
export function watchFiles(zone, take, refuse) {
  watchDrops(zone, ({ files }) => {
    if (files.length) take([...files]);
    else refuse({ code: "input", message: "What was dropped is not a file. Save it first, then drop the file." });
  });
  addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files ?? [])];
    if (files.length) take(files);
  });
}

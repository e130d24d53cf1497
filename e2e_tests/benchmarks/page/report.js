/** Posts one report to the server of the page. */
export async function report(key, value) {
  await fetch("/log", { method: "POST", body: JSON.stringify([key, value]) });
}

/** Does a page's work and reports its end: ["done", whether it came to it]; `tell` hears what stopped it. */
export async function concluded(work, tell) {
  try {
    await work();
  } catch (error) {
    tell(`stopped: ${error.message}`);
    await report("failed", String(error.stack ?? error));
    return report("done", false);
  }
  return report("done", true);
}

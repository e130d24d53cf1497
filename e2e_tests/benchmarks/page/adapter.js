/** What the browser says of its GPU, or null if it offers none. */
async function adapterInfo() {
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) return null;
  const { vendor, architecture, device, description } = adapter.info;
  return { vendor, architecture, device, description };
}

/** Where a page measures: what every report begins with. */
export async function about(gpu) {
  return {
    browser: navigator.userAgent, date: new Date().toISOString().slice(0, 19), isolated: crossOriginIsolated, threads: navigator.hardwareConcurrency,
    adapter: gpu ? await adapterInfo() : null,
  };
}

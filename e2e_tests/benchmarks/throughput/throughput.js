// Images and products a second: throughput.html?seconds=2&squares=1024,2048,4096&batches=1,32
// Posts ["row", {…}] for each measurement, ["failed", text] if one ends, ["done", true] at the end.

const asked = new URL(location.href).searchParams;
const status = document.getElementById("status");
const lines = document.getElementById("lines");
const numbers = (name, preset) => (asked.get(name) ?? preset).split(",").filter(Boolean).map(Number);

const options = {
  seconds: Number(asked.get("seconds") ?? 2),
  squares: numbers("squares", "1024,2048,4096"),
  batches: numbers("batches", "1,32"),
};
const worker = new Worker("throughput_worker.js", { type: "module" });

async function report(key, value) {
  lines.textContent += `${JSON.stringify(value)}\n`;
  await fetch("log", { method: "POST", body: JSON.stringify([key, value]) });
}

worker.onmessage = async ({ data: [key, value] }) => {
  status.textContent = key === "row" ? value.label : key;
  await report(key, value);
};
worker.onerror = (event) => report("failed", event.message || "the worker died");
worker.postMessage(options);

// Runs the benchmark: every system in a worker of its own, one model after the other, all systems interleaved.

import { Native, Remote } from "./remote.js";

const MAX_DIFFERENCE = 0.05; // of an output's range; what is further off does not compute this model

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function median(list) {
  const sorted = [...list].sort((a, b) => a - b), middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** A system with a model in it that has run once; `row` gets what that took. */
export async function open(entry, model, row) {
  const begin = performance.now();
  const remote = entry.system === "native" ? new Native(entry) : new Remote(entry.system);
  try {
    const { version } = await remote.call("start", entry);
    row.version = version;
    row.start_ms = performance.now() - begin;
    const { note, ...figures } = await remote.call("load", { model });
    Object.assign(row, figures, note ? { note } : {});
    if (row.max_rel_diff > MAX_DIFFERENCE) {
      throw new Error(`outputs differ by up to ${row.max_abs_diff} from the reference, ${(100 * row.max_rel_diff).toFixed(0)} % of their range`);
    }
    row.first_ms = row.start_ms + row.load_ms + row.first_run_ms; // some runtimes start only when they load
    return remote;
  } catch (error) {
    remote.end();
    throw error;
  }
}

/** Lets the optimising compilers get done; `row` gets how many runs make a turn. */
async function warm(remote, config, row) {
  const { run_ms } = await remote.call("warm", { ms: config.warm_ms, runs: config.warm_runs });
  row.runs = Math.max(config.least_runs, Math.min(config.most_runs, Math.ceil(config.turn_ms / run_ms)));
}

const same = (a, b) => ["system", "backend", "threads"].every((key) => a[key] === b[key]);

/**
 * One model: rows of all entries, failed ones with their error. `tell` hears what happens, `report` what is to be
 * blamed if the page ends; `model.refused` has the columns that ended it before.
 */
export async function measureModel(model, config, tell, report) {
  const rows = config.entries.map((entry) => ({ model: model.name, ...entry }));
  const remotes = new Map(), turns = new Map();
  const attempt = async (row, work) => {
    try {
      if (row.error) return;
      await report("doing", { model: model.name, system: row.system, backend: row.backend, threads: row.threads });
      await work();
    } catch (error) {
      row.error = String(error.message ?? error);
      remotes.get(row)?.end();
      remotes.delete(row);
    }
  };
  for (const [i, row] of rows.entries()) {
    row.error = model.refused?.find((refused) => same(refused, row))?.error;
    tell(`${model.name}: starting ${row.system} ${row.backend} ${row.threads || ""}`);
    await attempt(row, async () => {
      remotes.set(row, await open(config.entries[i], model, row));
      await warm(remotes.get(row), config, row);
    });
    turns.set(row, []);
  }
  for (let round = 0; round < config.rounds; round++) {
    tell(`${model.name}: round ${round + 1} of ${config.rounds}`);
    const shift = round % rows.length; // the order rotates: none always runs behind the same one
    for (const row of [...rows.slice(shift), ...rows.slice(0, shift)]) {
      if (!remotes.has(row)) continue;
      await pause(config.pause_ms); // threads of the one before fall asleep
      await attempt(row, async () => turns.get(row).push(await remotes.get(row).call("turn", { runs: row.runs, lanes: config.lanes })));
    }
  }
  for (const row of rows) await attempt(row, () => finish(row, remotes.get(row), turns.get(row), config.sizes));
  return rows;
}

/** Bytes that the system's own files took, compressed as a server would send them and as they are. */
function transferred(downloads, sizes) {
  let bytes = 0, bytes_raw = 0;
  for (const [url, size] of Object.entries(downloads)) {
    const path = url.slice(new URL(".", import.meta.url).href.length);
    if (!(path in sizes)) continue; // the benchmark's own
    bytes += sizes[path];
    bytes_raw += size;
  }
  return bytes ? { bytes, bytes_raw } : { bytes: null, bytes_raw: null };
}

/** Adds the figures of all turns to the row. */
function digest(row, turns) {
  const all = turns.flatMap((turn) => turn.times);
  row.median_ms = median(all);
  row.min_ms = Math.min(...all);
  row.round_ms = turns.map((turn) => median(turn.times));
  row.samples = all.length;
  const kept = turns.flatMap((turn) => turn.kept ?? []), flights = turns.map((turn) => turn.flight_ms).filter(Boolean);
  if (kept.length) Object.assign(row, { kept_median_ms: median(kept), kept_min_ms: Math.min(...kept) });
  if (flights.length) row.flight_ms = median(flights);
  const note = turns.find((turn) => turn.note)?.note;
  if (note) row.note = note;
}

async function finish(row, remote, turns, sizes) {
  if (!remote) return;
  digest(row, turns);
  const { downloads, memory_bytes } = await remote.call("state");
  Object.assign(row, { memory_bytes }, transferred(downloads, sizes));
  await remote.call("close");
  remote.end();
}

/** GFLOP/s of one core in this browser. */
export async function measurePeak(runs) {
  const remote = new Remote("peak");
  await remote.call("start", {});
  const gflops = await remote.call("measure", { runs });
  remote.end();
  return gflops;
}

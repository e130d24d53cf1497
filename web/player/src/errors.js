// What goes wrong, in words; `code` is stable and safe to compare.

/**
 * Codes: "package" (the bytes are none, or break their form), "integrity" (they are damaged), "unavailable" (a backend
 * cannot run here), "input", "device-lost", "gpu", "kernel", "memory", "closed", "network".
 */
export class PlayerError extends Error {
  constructor(code, message, cause) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "PlayerError";
    this.code = code;
  }
}

const KINDS = { DeviceLost: "device-lost", OutOfMemory: "memory", Unavailable: "unavailable", Refused: "gpu" };

/** The typed error of one that gpu_device.js or gpu_program.js threw. */
export function ofGpu(error) {
  return error instanceof PlayerError ? error : new PlayerError(KINDS[error.name] ?? "gpu", error.message, error);
}

/** The typed error of any other; `code` is its code where nothing better is known. */
export function typed(error, code) {
  if (error instanceof PlayerError) return error;
  const memory = error instanceof RangeError && /alloc|memory|length/i.test(error.message);
  return new PlayerError(memory ? "memory" : code, error?.message ?? String(error), error);
}

/** What `read` makes of facts of a package, which nobody vouches for. */
export function formed(read) {
  try {
    return read();
  } catch (error) {
    if (error instanceof PlayerError) throw error;
    throw new PlayerError("package", `the package breaks its form: ${error.message}`, error);
  }
}

/** A whole number from 0 up, or an error. */
export function whole(value) {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new PlayerError("package", `the package has ${String(value).slice(0, 40)} where a whole number belongs`);
  }
  return value;
}

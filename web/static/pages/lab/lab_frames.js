// A message of the lab: JSON, and behind it buffers where it has such (server/lab/frames.py has the form in words).

const LENGTH_BYTES = 4;

/** The message as it is sent: a text, or bytes where there are buffers. */
export function written(message, buffers = []) {
  if (!buffers.length) return JSON.stringify(message);
  const views = buffers.map((buffer) => new Uint8Array(buffer));
  const head = new TextEncoder().encode(JSON.stringify({ ...message, buffers: views.map(({ length }) => length) }));
  const whole = new Uint8Array(views.reduce((sum, { length }) => sum + length, LENGTH_BYTES + head.length));
  new DataView(whole.buffer).setUint32(0, head.length, true);
  whole.set(head, LENGTH_BYTES);
  let at = LENGTH_BYTES + head.length;
  for (const view of views) {
    whole.set(view, at);
    at += view.length;
  }
  return whole;
}

/** The message in what came, with a Uint8Array in place of each {"buffer": n}. */
export function read(data) {
  if (typeof data === "string") return JSON.parse(data);
  const end = LENGTH_BYTES + new DataView(data).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(data, LENGTH_BYTES, end - LENGTH_BYTES));
  const buffers = [];
  let at = end;
  for (const length of JSON.parse(text).buffers) {
    buffers.push(new Uint8Array(data, at, length));
    at += length;
  }
  return JSON.parse(text, (_, value) => buffers[value?.buffer] ?? value);
}

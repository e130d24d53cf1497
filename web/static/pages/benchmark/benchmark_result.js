// A result of the benchmark: what it is made of, and how it travels in a link or a file. Whatever comes from elsewhere is
// checked before any of it is shown.

import { packed, unpacked } from "../../ui/link_text.js";

const VERSION = 1;
const MOST = { link: 100_000, file: 1_000_000, rows: 500, text: 200 };

/** A result that nobody can read; `code` is "input". */
export class ResultError extends Error {
  code = "input";
}

const quantile = (sorted, part) => {
  const place = (sorted.length - 1) * part;
  const [low, high] = [Math.floor(place), Math.ceil(place)];
  return sorted[low] + (sorted[high] - sorted[low]) * (place - low);
};

/** Median, quartiles and extremes of milliseconds. */
export function summary(times) {
  const sorted = [...times].sort((a, b) => a - b);
  const [least, low, median, high, most] = [0, 0.25, 0.5, 0.75, 1].map((part) => quantile(sorted, part));
  return { least, low, median, high, most, runs: sorted.length };
}

const NUMBERS = ["least", "low", "median", "high", "most", "runs", "compile", "first"];

/** A result with these rows: {model, backend} and the numbers of `summary`, compile and first, or an error. */
export const resultOf = (engine, device, rows) => ({ version: VERSION, when: new Date().toISOString(), engine, device, rows });

function text(value, what) {
  if (typeof value !== "string" || value.length > MOST.text) throw new ResultError(`The result is damaged: ${what} is not a short text.`);
  return value;
}

function number(value, what) {
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) throw new ResultError(`The result is damaged: ${what} is not a number.`);
  return value;
}

function checkedRow(row) {
  if (typeof row !== "object" || row === null) throw new ResultError("The result is damaged: a row is not an object.");
  const [model, backend] = [text(row.model, "a model"), text(row.backend, "a backend")];
  if (row.error !== undefined) return { model, backend, error: text(row.error, "an error") };
  return { model, backend, ...Object.fromEntries(NUMBERS.map((name) => [name, number(row[name], name)])) };
}

/** The parts of a result that there should be, and nothing else. Throws ResultError. */
export function checked(found) {
  if (typeof found !== "object" || found === null || found.version !== VERSION) throw new ResultError("This is not a result of this benchmark, or one of another version.");
  if (!Array.isArray(found.rows) || found.rows.length > MOST.rows) throw new ResultError("The result is damaged: its rows are not a list.");
  const [when, engine, device] = ["when", "engine", "device"].map((name) => text(found[name], name));
  return { version: VERSION, when, engine, device, rows: found.rows.map(checkedRow) };
}

/** The result in a file's text. Throws ResultError. */
export function fromText(json) {
  if (json.length > MOST.file) throw new ResultError(`The result is too large: ${json.length} characters.`);
  try {
    return checked(JSON.parse(json));
  } catch (error) {
    throw error instanceof ResultError ? error : new ResultError("The file is not valid JSON.");
  }
}

/** The result as the last part of an address, compressed: numbers with four digits. */
export async function toLink(result) {
  const json = JSON.stringify(result, (_, value) => (typeof value === "number" ? Number(value.toPrecision(4)) : value));
  return `result=${await packed(json)}`;
}

/** The result in the last part of an address; null if there is none. Throws ResultError. */
export async function fromLink(hash) {
  const coded = new URLSearchParams(hash.slice(1)).get("result");
  if (!coded) return null;
  if (coded.length > MOST.link) throw new ResultError("The link is too long to be a result.");
  try {
    return fromText(await unpacked(coded, MOST.file));
  } catch (error) {
    if (error instanceof ResultError) throw error;
    throw new ResultError(`The link is damaged: it ${error instanceof RangeError ? "unpacks to too much" : "cannot be unpacked"}.`);
  }
}

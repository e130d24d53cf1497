// Converts arguments as Web IDL says, by the kinds that webinfer/webnn/signatures.py names. Knows no operator.

import { TYPES } from "./webnn_methods.js";

const MAX_U32 = 4294967295;

export function refuse(message) {
  throw new TypeError(message);
}

function integer(value, low, high, name) {
  const number = Math.trunc(+value); // a bigint throws here, as it shall
  if (!(number >= low && number <= high)) refuse(`${name} is ${String(value)}, needs an integer from ${low} to ${high}`);
  return number + 0;
}

function real(value, name) {
  const number = +value;
  return Number.isFinite(number) ? number : refuse(`${name} is ${number}, needs a finite number`);
}

/** JSON has no infinities, no NaN and no large integers: they go over as texts. */
function number(value) {
  if (typeof value === "bigint") return `${value}n`;
  const found = +value;
  return Number.isFinite(found) ? found : String(found);
}

export function choice(value, words, name) {
  const text = `${value}`;
  return words.includes(text) ? text : refuse(`${name} is "${text}", needs one of ${words.join(", ")}`);
}

export function sequence(value, convert, name) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null || typeof value[Symbol.iterator] !== "function") {
    refuse(`${name} is not a sequence`);
  }
  return Array.from(value, (one) => convert(one, name));
}

const KINDS = {
  u32: (value, name) => integer(value, 0, MAX_U32, name),
  i32: (value, name) => integer(value, -2147483648, 2147483647, name),
  f64: real,
  bool: Boolean,
  number,
  u32s: (value, name) => sequence(value, KINDS.u32, name),
  f32s: (value, name) => sequence(value, (one) => real(Math.fround(one), name), name),
  "u32|u32s": (value, name) => (value?.[Symbol.iterator] && typeof value === "object" ? KINDS.u32s : KINDS.u32)(value, name),
};
export const convertNumber = number;

/** The value as an argument of this kind; `own` has the kinds that only the caller knows. */
export function convert(value, kind, name, own) {
  const known = own[kind] ?? KINDS[kind];
  if (known) return known(value, name);
  const listed = kind.endsWith("*");
  const words = (listed ? kind.slice(0, -1) : kind).split("/");
  return listed ? sequence(value, (one) => choice(one, words, name), name) : choice(value, words, name);
}

/** The dictionary itself, or an empty one; anything else is refused. */
export function dictionary(value, name) {
  if (value === undefined || value === null) return {};
  return typeof value === "object" || typeof value === "function" ? value : refuse(`${name} is not a dictionary`);
}

/** Pairs of a record: the own enumerable properties. */
export function record(value, convertOne, name) {
  if (typeof value !== "object" || value === null) refuse(`${name} is not a record`);
  return Object.keys(value).map((key) => [key.toWellFormed?.() ?? key, convertOne(value[key], key)]);
}

/** A descriptor's element type and shape; `shape` is JSON. */
export function descriptor(value, name = "descriptor") {
  if (typeof value !== "object" || value === null) refuse(`${name} is not a dictionary`);
  const { dataType, shape } = value;
  if (dataType === undefined || shape === undefined) refuse(`${name} needs dataType and shape`);
  return { dataType: choice(dataType, TYPES, "dataType"), shape: JSON.stringify(KINDS.u32s(shape, "shape")) };
}

/** What Python answered; its refusal becomes a TypeError. */
export function answer(json) {
  const found = JSON.parse(json);
  if (found?.error !== undefined) throw new TypeError(found.error);
  return found;
}

/** The bytes of a buffer, a shared one or a view of one: not copied. */
export function bytesOf(value, name) {
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  const shared = typeof SharedArrayBuffer !== "undefined" && value instanceof SharedArrayBuffer;
  return value instanceof ArrayBuffer || shared ? new Uint8Array(value) : refuse(`${name} is neither a buffer nor a view of one`);
}

/** Gives a class the form of an interface: its members can be listed, and objects say what they are. */
export function asInterface(type, name, length = 0) {
  const { prototype } = type;
  for (const [key, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (key !== "constructor") Object.defineProperty(prototype, key, { ...descriptor, enumerable: true });
  }
  Object.defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
  Object.defineProperty(type, "length", { value: length, configurable: true });
  return type;
}

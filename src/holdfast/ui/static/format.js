// Words for values; nothing here touches the page.

const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;
const escape = (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
// Soft hyphens and joiners, which words of many languages and emoji have within, and names must not hide.
const JOINS = /[\u00ad\u200c\u200d]/;
const WITHIN =
  /(?<=[\p{L}\p{M}\p{Extended_Pictographic}\u{1f3fb}-\u{1f3ff}])[\u00ad\u200c\u200d](?=[\p{L}\p{Extended_Pictographic}])/gu;

// The text with its control and bidi characters written out, cut to `most`; on one line unless told.
// In what is said to be prose, joiners stay within words.
export function visible(value, most = 300, line = true, prose = false) {
  let text =
    typeof value === "string" ? value : value === null || value === undefined ? "" : String(value);
  const cut = text.length > most;
  if (cut) text = text.slice(0, most);
  text = text.replace(/\r\n/g, "\n");
  const within = prose && JOINS.test(text) ? joined(text) : null;
  text = text.replace(HIDDEN, (letter, at) => (within?.has(at) ? letter : escape(letter)));
  if (line) text = text.replace(/\n/g, "⏎").replace(/\t/g, " ");
  return cut && line ? `${text}…` : text;
}

const joined = (text) => new Set([...text.matchAll(WITHIN)].map((found) => found.index));

export function bytes(count) {
  if (count === null || count === undefined) return "–";
  if (count < 1000) return `${count} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let size = count;
  let at = -1;
  while (size >= 1000 && at < units.length - 1) {
    size /= 1000;
    at += 1;
  }
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${units[at]}`;
}

export const number = (count) =>
  count === null || count === undefined ? "–" : Number(count).toLocaleString("en");
export const plural = (count, one, many = `${one}s`) =>
  `${number(count)} ${count === 1 ? one : many}`;
export const short = (id) => {
  const text = String(id || "");
  return /^[0-9a-f-]{36}$/.test(text) ? text.slice(0, 18) : text.slice(0, 24);
};

export function ago(moment) {
  const then = Date.parse(moment);
  if (Number.isNaN(then)) return "";
  const seconds = (Date.now() - then) / 1000;
  const spoken = (count, unit) => (seconds >= 0 ? `${count} ${unit} ago` : `in ${count} ${unit}`);
  const size = Math.abs(seconds);
  if (size < 5) return "now";
  if (size < 60) return spoken(Math.round(size), "s");
  if (size < 3600) return spoken(Math.round(size / 60), "min");
  if (size < 86400) return spoken(Math.round(size / 3600), "h");
  if (size < 86400 * 30) return spoken(Math.round(size / 86400), "d");
  return new Date(then).toISOString().slice(0, 10);
}

export function moment(value) {
  const then = new Date(value);
  return Number.isNaN(then.getTime())
    ? String(value || "")
    : then.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
}

const two = (count) => String(count).padStart(2, "0");
const isWhole = (one) => Number.isInteger(one) && one >= 0 && one < 1e7;

// A typed datetime as it is written, with the zone that it has; null for anything else.
function dated(value) {
  if (value?.$type !== "datetime" || !Array.isArray(value.value)) return null;
  const [year, month, day, hour, minute, second, micro, , zone] = value.value;
  if (![year, month, day, hour, minute, second, micro].every(isWhole)) return null;
  const date = `${String(year).padStart(4, "0")}-${two(month)}-${two(day)}`;
  const part = micro ? `.${String(micro).padStart(6, "0")}` : "";
  return `${date}T${two(hour)}:${two(minute)}:${two(second)}${part}${zoned(zone)}`;
}

// How a zone is written behind a time: nothing of a time that has none.
function zoned(zone) {
  if (zone?.$type === "ZoneInfo") return `[${visible(zone.value, 60)}]`;
  const [days, seconds] = (zone?.$type === "timezone" && zone.value?.[0]?.value) || [];
  if (!Number.isFinite(days) || !Number.isFinite(seconds)) return "";
  const all = Math.round((days * 86400 + seconds) / 60);
  const minutes = Math.abs(all);
  return all ? `${all < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}` : "Z";
}

// The moment of a typed datetime with a zone as a text of ISO, or null; such a text is one too.
export function instant(value) {
  const text = typeof value === "string" ? value : dated(value);
  return text && !Number.isNaN(Date.parse(text)) ? text : null;
}

// A typed value as people read it, in one line.
export function plain(value, depth = 0) {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string")
    return depth ? JSON.stringify(value.length > 400 ? `${value.slice(0, 400)}…` : value) : value;
  if (typeof value !== "object") return String(value);
  if (depth > 4) return "…";
  if (isTyped(value)) {
    const when = dated(value);
    if (when) return when;
    if (digits(value) !== null) return value.value;
    const read = untyped(value, depth);
    if (typeof read === "string") return read;
    const inner = plain(value.value, depth + 1);
    return value.$type === "tuple" ? `(${inner.slice(1, -1)})` : `${value.$type} ${inner}`;
  }
  if (Array.isArray(value)) {
    const parts = value.slice(0, 50).map((one) => plain(one, depth + 1));
    return `[${parts.join(", ")}${value.length > 50 ? ", …" : ""}]`;
  }
  const own = escaped(value) ?? value;
  const names = Object.keys(own);
  return `{${names
    .slice(0, 50)
    .map((name) => `${name}: ${plain(own[name], depth + 1)}`)
    .join(", ")}${names.length > 50 ? ", …" : ""}}`;
}

// A dict of somebody's that only looks typed: its own keys mean nothing.
const escaped = (value) =>
  value?.$type === "escaped" && value.value !== null && typeof value.value === "object"
    ? value.value
    : null;
const isTyped = (value) => Object.hasOwn(value, "$type") && !escaped(value);

// A number that this page would alter comes as a text, which it is shown as.
const WRITTEN = new Map([
  ["int", /^-?[0-9]{1,620}$/],
  ["float", /^-?[0-9.e+-]{1,30}$/],
]);
const digits = (value) =>
  typeof value?.value === "string" && WRITTEN.get(value.$type)?.test(value.value)
    ? value.value
    : null;

// A typed value without its types, as far as people read it better so.
function untyped(value, depth = 0) {
  if (value === null || typeof value !== "object" || depth > 100) return value;
  if (Array.isArray(value)) return value.map((one) => untyped(one, depth + 1));
  if (!isTyped(value)) return new Own(escaped(value) ?? value, depth);
  if (digits(value) !== null) return new Digits(value.value);
  const when = dated(value);
  if (when) return when;
  const inner = untyped(value.value, depth + 1);
  if (["tuple", "set", "frozenset", "deque", "preview"].includes(value.$type)) return inner;
  if (value.$type === "exception" && Array.isArray(inner)) {
    const name = String(inner[0]).split(":").pop();
    const said = Array.isArray(value.value[2]) ? value.value[2] : [];
    return `${name}: ${said.map((one) => plain(one)).join(", ")}`;
  }
  const array = value.$type === "ndarray" ? arrayed(value.value) : null;
  if (array) return array;
  return new Own({ ...value, value: inner }, depth, true);
}

// An array of numpy by its type and shape, and how it begins.
const NUMBERS = new Map([
  ["<f8", [8, "getFloat64"]],
  ["<f4", [4, "getFloat32"]],
  ["<i8", [8, "getBigInt64"]],
  ["<i4", [4, "getInt32"]],
  ["<i2", [2, "getInt16"]],
  ["|i1", [1, "getInt8"]],
  ["|u1", [1, "getUint8"]],
  ["|b1", [1, "getUint8"]],
]);
const SHOWN = 12;
function arrayed(value) {
  if (!Array.isArray(value) || typeof value[2] !== "string" || !Array.isArray(value[3]))
    return null;
  const [, data, type, shape] = value;
  const begins = numbersIn(data?.value, type);
  const size = shape.map((one) => number(one)).join(" × ");
  return `array ${visible(type, 20)}, ${size || "one value"}${begins ? `: ${begins}` : ""}`;
}
function numbersIn(data, type) {
  const [width, read] = NUMBERS.get(type) ?? [];
  if (!width || typeof data !== "string") return "";
  try {
    const raw = atob(data.slice(0, 4 * Math.ceil((width * SHOWN) / 3)));
    const view = new DataView(Uint8Array.from(raw, (letter) => letter.charCodeAt(0)).buffer);
    const all = [];
    for (let at = 0; at + width <= view.byteLength && all.length < SHOWN; at += width)
      all.push(String(view[read](at, true)));
    return all.join(", ") + (data.length > 4 * Math.ceil((width * SHOWN) / 3) ? ", …" : "");
  } catch {
    return ""; // what is no base64, as of a value that was cut
  }
}

// Digits that were sent as a text, and names with values in their order, as they are laid out.
class Digits {
  constructor(text) {
    this.text = text;
  }
}
class Own {
  constructor(value, depth, isDone = false) {
    this.entries = Object.entries(value).map(([name, one]) => [
      name,
      isDone ? one : untyped(one, depth + 1),
    ]);
  }
}

function laid(value, space = "") {
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  if (value instanceof Digits) return value.text;
  const inner = `${space}  `;
  const entries = value instanceof Own ? value.entries : Object.entries(value);
  const parts = Array.isArray(value)
    ? value.map((one) => inner + laid(one, inner))
    : entries.map(([name, one]) => `${inner}${JSON.stringify(name)}: ${laid(one, inner)}`);
  const [first, last] = Array.isArray(value) ? "[]" : "{}";
  return parts.length ? `${first}\n${parts.join(",\n")}\n${space}${last}` : first + last;
}

// A text of JSON on several lines, with its numbers as they are written in it.
const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/g;
function laidText(text) {
  let space = "\n";
  let made = "";
  const tokens = text.match(TOKEN) || [];
  tokens.forEach((token, at) => {
    if (token === "{" || token === "[") {
      const isEmpty = /^[}\]]$/.test(tokens[at + 1]);
      space += "  ";
      made += isEmpty ? token : token + space;
    } else if (token === "}" || token === "]") {
      space = space.slice(0, -2);
      made += /^[{[]$/.test(tokens[at - 1]) ? token : space + token;
    } else made += token === "," ? `,${space}` : token === ":" ? ": " : token;
  });
  return made;
}

// A value on several lines; a text that holds JSON is laid out too.
export function pretty(value) {
  if (typeof value === "string") {
    const text = value.trim();
    if (text.length < 200000 && /^[[{]/.test(text)) {
      try {
        JSON.parse(text);
        return laidText(text);
      } catch {
        return value;
      }
    }
    return value;
  }
  const read = untyped(value);
  return typeof read === "string" ? read : laid(read);
}

const KINDS = new Map(
  Object.entries({
    failed: "bad",
    unknown: "bad",
    error: "bad",
    denied: "bad",
    "cut off": "bad",
    damaged: "bad",
    removed: "bad",
    dead: "bad",
    waiting: "warn",
    interrupt: "warn",
    modified: "warn",
    started: "warn",
    mode: "warn",
    running: "live",
    head: "live",
    in_progress: "live",
    active: "live",
    done: "good",
    ended: "good",
    completed: "good",
    ok: "good",
    added: "good",
    accepted: "good",
    compensated: "quiet",
    undone: "quiet",
  }),
);
export const kindOf = (word) => KINDS.get(word) || "quiet";

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

// The moment that a typed datetime is, or null; an ISO text is one too.
export function instant(value) {
  if (typeof value === "string") return value;
  if (!value || value.$type !== "datetime" || !Array.isArray(value.value)) return null;
  const [year, month, day, hour, minute, second, micro] = value.value;
  return new Date(
    Date.UTC(year, month - 1, day, hour, minute, second, Math.floor(micro / 1000)),
  ).toISOString();
}

// A typed value as people read it, in one line.
export function plain(value, depth = 0) {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string")
    return depth ? JSON.stringify(value.length > 400 ? `${value.slice(0, 400)}…` : value) : value;
  if (typeof value !== "object") return String(value);
  if (depth > 4) return "…";
  if ("$type" in value) {
    const when = instant(value);
    if (when) return moment(when);
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
  const names = Object.keys(value);
  return `{${names
    .slice(0, 50)
    .map((name) => `${name}: ${plain(value[name], depth + 1)}`)
    .join(", ")}${names.length > 50 ? ", …" : ""}}`;
}

// A number that this page would alter comes as a text, which it is shown as.
const digits = (value) =>
  value && ["int", "float"].includes(value.$type) && typeof value.value === "string"
    ? value.value
    : null;

// A typed value without its types, as far as people read it better so.
function untyped(value, depth = 0) {
  if (value === null || typeof value !== "object" || depth > 100) return value;
  if (Array.isArray(value)) return value.map((one) => untyped(one, depth + 1));
  if (!("$type" in value))
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [name, untyped(one, depth + 1)]),
    );
  if (digits(value) !== null) return value;
  const when = instant(value);
  if (when) return when;
  const inner = untyped(value.value, depth + 1);
  if (["tuple", "set", "frozenset", "deque", "preview"].includes(value.$type)) return inner;
  if (value.$type === "exception" && Array.isArray(inner)) {
    const name = String(inner[0]).split(":").pop();
    return `${name}: ${(inner[2] || []).map((one) => plain(one)).join(", ")}`;
  }
  return { ...value, value: inner };
}

function laid(value, space = "") {
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  if (digits(value) !== null) return value.value;
  const inner = `${space}  `;
  const parts = Array.isArray(value)
    ? value.map((one) => inner + laid(one, inner))
    : Object.entries(value).map(
        ([name, one]) => `${inner}${JSON.stringify(name)}: ${laid(one, inner)}`,
      );
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

const KINDS = {
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
};
export const kindOf = (word) => KINDS[word] || "quiet";

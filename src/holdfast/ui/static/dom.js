// Elements are made here and nowhere else: every value is text, never markup.
import { visible } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set([
  "value",
  "checked",
  "disabled",
  "hidden",
  "open",
  "selected",
  "indeterminate",
  "readOnly",
]);

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "vars")
      for (const [key, of] of Object.entries(value)) element.style.setProperty(key, of);
    else if (PROPERTIES.has(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

export function add(element, children) {
  for (const child of [children].flat(9)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export const h = (tag, attributes, ...children) =>
  fill(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

export function put(element, ...children) {
  element.replaceChildren();
  return add(element, children);
}

// A value from a checkpoint: its direction cannot leak, its control characters are seen.
export const val = (value, most = 300, attributes = {}) =>
  h("bdi", attributes, visible(value, most));

export const chip = (text, kind = "", attributes = {}) =>
  h("span", { class: `chip ${kind}`, ...attributes }, visible(text, 60));

export function button(label, click, attributes = {}) {
  return h("button", { type: "button", class: "button", click, ...attributes }, label);
}

export function link(address, attributes, ...children) {
  return h("a", { href: address, ...attributes }, ...children);
}

export function bar(progress, label = "Tasks done") {
  if (!progress || !progress.total) return null;
  const share = Math.round((100 * progress.done) / progress.total);
  return h(
    "span",
    { class: "progress", title: `${progress.done} of ${progress.total} tasks done` },
    h(
      "span",
      {
        class: "rail",
        role: "progressbar",
        "aria-label": label,
        "aria-valuemin": 0,
        "aria-valuemax": progress.total,
        "aria-valuenow": progress.done,
      },
      h("span", { class: "run", vars: { "--share": `${share}%` } }),
    ),
    h("span", { class: "count" }, `${progress.done}/${progress.total}`),
  );
}

export function copy(text, label) {
  const made = button(
    "Copy",
    async () => {
      try {
        await navigator.clipboard.writeText(text);
        made.textContent = "Copied";
      } catch {
        made.textContent = "Not allowed";
      }
      setTimeout(() => {
        made.textContent = "Copy";
      }, 1500);
    },
    { class: "button small", "aria-label": `Copy ${label}`, "data-test": "copy" },
  );
  return made;
}

// Long text is cut in the view; "show all" brings more of it, never so much that the page stops.
const FIRST = 4000;
const STEP = 100000;
export function long(value, attributes = {}, more = null, total = null) {
  let text = String(value);
  let upTo = FIRST;
  const body = h("span", {}, visible(text, FIRST, false));
  const box = h("div", { class: "long", ...attributes }, body);
  const whole = total || text.length;
  if (text.length <= FIRST && !more) return box;
  const label = () =>
    `Show ${upTo === FIRST ? "all" : "more"} (${whole.toLocaleString("en")} characters)`;
  const next = button(
    label(),
    async () => {
      next.disabled = true;
      if (more) {
        try {
          text = await more();
          more = null;
        } catch (error) {
          box.append(h("p", { class: "bad" }, error.message));
          return;
        }
      }
      body.append(visible(text.slice(upTo, upTo + STEP), STEP, false));
      upTo += STEP;
      next.disabled = false;
      next.textContent = label();
      if (upTo >= text.length) next.remove();
    },
    { class: "button small", "data-test": "show-all" },
  );
  if (more && text.length <= FIRST) upTo = text.length;
  body.textContent = visible(text.slice(0, upTo), upTo, false);
  box.append(next);
  return box;
}

export function failure(error) {
  const box = h(
    "div",
    { class: "failure", role: "alert", "data-test": "error" },
    h("strong", {}, error.title || "That did not work"),
    h("p", {}, val(error.message, 2000)),
  );
  if (error.suggestions && error.suggestions.length)
    box.append(
      h(
        "ul",
        {},
        error.suggestions.map((one) => h("li", {}, val(one, 500))),
      ),
    );
  if (error.remedy) box.append(h("p", { class: "quiet" }, error.remedy));
  return box;
}

export const empty = (...words) => h("p", { class: "empty" }, ...words);
export const loading = () => h("p", { class: "empty", "aria-busy": "true" }, "Reading…");

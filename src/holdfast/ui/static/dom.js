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

// What an element does is reached through it, so that `patch` can give it what a newer one does.
function listen(element, name, act) {
  element.acts ??= {};
  if (!(name in element.acts))
    element.addEventListener(name, (event) => element.acts[name]?.(event));
  element.acts[name] = act;
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") listen(element, name, value);
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

// Draws the inside of an element anew and keeps what is the same: focus, scrolling, what is open. Rows
// that move are known by `data-key`. What has a state of its own says what it is of in `same`: it stays
// while that is the same, and is replaced as a whole when it is not.
export function patch(element, ...children) {
  const focused = document.activeElement;
  merge(element, add(element.cloneNode(false), children));
  if (focused !== document.activeElement && element.contains(focused))
    focused.focus({ preventScroll: true });
  return element;
}

function merge(element, fresh) {
  const keyed = new Map();
  for (const node of element.childNodes) if (node.dataset?.key) keyed.set(node.dataset.key, node);
  const kept = new Set();
  let next = element.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const old = wanted.dataset?.key ? keyed.get(wanted.dataset.key) : alike(next, wanted);
    const node = old && !kept.has(old) ? renewed(old, wanted) : wanted;
    kept.add(node);
    if (old === next && next) next = next.nextSibling;
    if (node === old) {
      if (old.nextSibling !== next) element.insertBefore(old, next);
    } else {
      element.insertBefore(node, next);
      if (old && !kept.has(old)) old.remove();
    }
  }
  for (const node of [...element.childNodes]) if (!kept.has(node)) node.remove();
}

function alike(node, wanted) {
  let found = node;
  while (found && (found.nodeName !== wanted.nodeName || found.dataset?.key))
    found = found.nextSibling;
  return found;
}

// What a person opened stays open; a style is not set as an attribute, which the page does not allow.
const OWN = new Set(["open", "style"]);

// An element that was there as a newer one would have it; the newer one where it cannot become that.
export function renewed(old, wanted) {
  if (old.nodeName !== wanted.nodeName) return wanted;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data;
    return old;
  }
  if (old.same !== undefined || wanted.same !== undefined)
    return old.same === wanted.same ? old : wanted;
  for (const { name } of [...old.attributes])
    if (!wanted.hasAttribute(name) && !OWN.has(name)) old.removeAttribute(name);
  for (const { name, value } of wanted.attributes)
    if (!OWN.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (old.style.cssText !== wanted.style.cssText) old.style.cssText = wanted.style.cssText;
  for (const name of Object.keys({ ...old.acts, ...wanted.acts }))
    listen(old, name, wanted.acts?.[name]);
  merge(old, wanted);
  return old;
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

export function copy(text, label, shown = "Copy") {
  return button(
    shown,
    async ({ currentTarget: knob }) => {
      try {
        await navigator.clipboard.writeText(text);
        knob.textContent = "Copied";
      } catch {
        knob.textContent = "Not allowed";
      }
      setTimeout(() => {
        knob.textContent = shown;
      }, 1500);
    },
    {
      class: "button small",
      title: `Copy ${label}`,
      "aria-label": `Copy ${label}`,
      "data-test": "copy",
    },
  );
}

// Long text is cut in the view; "show all" brings more of it, never so much that the page stops. With
// `drawn` a text is not shown as it is, but as what that makes of it.
const FIRST = 4000;
const STEP = 100000;
const MOST_DRAWN = 20000;
export function long(value, attributes = {}, more = null, total = null, drawn = null) {
  let text = String(value);
  let upTo = FIRST;
  const body = h(drawn ? "div" : "span", {});
  const box = h("div", { class: "long", ...attributes }, body);
  box.same = `${attributes.class} ${total} ${drawn?.name} ${text}`;
  const whole = total || text.length;
  const tell = () =>
    drawn && upTo <= MOST_DRAWN
      ? put(body, drawn(text.slice(0, upTo)))
      : put(body, visible(text.slice(0, upTo), upTo, false, Boolean(attributes.dir)));
  tell();
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
      upTo += STEP;
      tell();
      next.disabled = false;
      next.textContent = label();
      if (upTo >= text.length) next.remove();
    },
    { class: "button small", "data-test": "show-all" },
  );
  if (more && text.length <= FIRST) upTo = text.length;
  tell();
  box.append(next);
  return box;
}

export function failure(error) {
  const box = h(
    "div",
    { class: "failure", role: "alert", "data-test": "error" },
    h("strong", {}, error.title || "That did not work"),
    h("p", { class: "words" }, visible(error.message, 2000, false)),
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

// What cannot be drawn says so in its own place, and hides nothing beside it.
export function safely(draw) {
  try {
    return draw();
  } catch (error) {
    return failure({ title: "This cannot be shown", message: String(error.message) });
  }
}

export const empty = (...words) => h("p", { class: "empty" }, ...words);
export const loading = () => h("p", { class: "empty", "aria-busy": "true" }, "Reading…");

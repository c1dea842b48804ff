// Addresses, keys, theme, notices: what all views have in common.
import { button, failure, h, link, loading, put } from "./dom.js";
import { ahead, get, query, settings } from "./api.js";
import { follow } from "./live.js";
import { ago, visible } from "./format.js";
import { help } from "./help.js";
import { kept } from "./kept.js";

// Rows of the first page of a log.
export const ROWS = 100;
const VIEWS = new Map([
  ["", ["Sessions", () => import("./sessions.js")]],
  ["session", ["Session", () => import("./session.js"), beginSession]],
  ["compare", ["Compare", () => import("./compare.js")]],
  ["inbox", ["Inbox", () => import("./inbox.js")]],
  ["storage", ["Storage", () => import("./storage.js")]],
]);
const NAV = ["", "inbox", "compare", "storage"];

const main = document.getElementById("main");
const banner = document.getElementById("banner");
const notices = document.getElementById("notices");
const base = new URL(document.baseURI);
let view = null;
let shown = null;
let turn = 0;

const place = () => location.pathname.slice(base.pathname.length).replace(/^\/+|\/+$/g, "");
const given = () => Object.fromEntries(new URLSearchParams(location.search));

export function to(name, parameters) {
  return `${name || "./"}${query(parameters)}`;
}

// Go to an address of the page; `replace` keeps the way back short.
export function go(name, parameters, replace = false) {
  const where = new URL(to(name, parameters), base);
  history[replace ? "replaceState" : "pushState"]({}, "", where);
  render();
}

// Change parameters of this address, without drawing the view anew.
export function keep(parameters) {
  const now = { ...given(), ...parameters };
  history.replaceState({}, "", new URL(to(place(), now), base));
  if (view) view.address = location.href;
}

export function notice(words, { kind = "", undo = null, stay = false } = {}) {
  const close = () => box.remove();
  const box = h(
    "div",
    { class: `notice ${kind}`, "data-test": "notice" },
    h("span", {}, words),
    undo &&
      button(
        "Undo",
        () => {
          close();
          undo();
        },
        { class: "button small", "data-test": "undo" },
      ),
    button("×", close, { class: "button small plain", "aria-label": "Close this notice" }),
  );
  notices.append(box);
  while (notices.children.length > 4) notices.firstChild.remove();
  if (!stay) setTimeout(close, undo ? 20000 : 7000);
}

// The list that was left last, with its filters: where a session leads back to.
let list = {};
export const listed = () => list;
export const leave = (asked) => {
  list = asked;
};

export const title = (words) => {
  document.title = words ? `${visible(words, 120)} · Holdfast` : "Holdfast";
};

function beginSession({ agent, session }) {
  if (!agent || !session) return;
  ahead("session", { agent, session });
  ahead("log", { agent, session, limit: ROWS });
}

async function render() {
  const name = place();
  const parameters = given();
  for (const one of document.querySelectorAll("#nav a")) {
    const current = one.dataset.view === name || (name === "session" && one.dataset.view === "");
    if (current) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  if (view && shown === name && view.moved && view.moved(parameters)) return;
  turn += 1;
  const mine = turn;
  view?.close?.();
  view = null;
  shown = name;
  const known = VIEWS.get(name);
  main.className = `view-${name || "sessions"}`;
  if (!known) {
    put(main, failure({ title: "Not found", message: "There is no such page here." }));
    return;
  }
  title(known[0]);
  put(main, loading());
  known[2]?.(parameters);
  try {
    const module = await known[1]();
    const root = h("div", { class: "view" });
    const made = await module.open(root, parameters);
    if (mine !== turn) {
      made?.close?.();
      return;
    }
    view = made || {};
    put(main, root);
    view.ready?.();
  } catch (error) {
    if (mine === turn) {
      put(main, failure(error));
      view = {
        refresh: () => {
          if (error.status !== 404) {
            shown = null;
            render();
          }
        },
      };
    }
  }
}

// Views are drawn anew at a pace that leaves the server most of its time, however much is written.
const SOON = 120;
const LATEST = 2000;
let pause = SOON;
let waiting = null;
let timer = 0;
function changed(what) {
  waiting = waiting || { sessions: [], inbox: false };
  if (what.sessions === null || waiting.sessions === null) waiting.sessions = null;
  else waiting.sessions.push(...what.sessions);
  waiting.inbox = waiting.inbox || what.inbox;
  timer = timer || setTimeout(redraw, pause);
}

async function redraw() {
  const all = waiting;
  const began = performance.now();
  waiting = null;
  try {
    await view?.refresh?.(all);
    await count();
  } catch (error) {
    if (error.name !== "AbortError" && error.status !== 0) notice(error.message, { kind: "bad" });
  }
  pause = Math.min(LATEST, Math.max(SOON, 3 * (performance.now() - began)));
  timer = waiting ? setTimeout(redraw, pause) : 0;
}

async function count() {
  const badge = document.getElementById("inbox-count");
  const { total } = await get("inbox");
  badge.textContent = total ? String(total) : "";
  badge.hidden = !total;
}

const chosenTheme = kept("theme");
function theme(to) {
  document.documentElement.dataset.theme = to;
  chosenTheme.set(to);
}
const dark = () =>
  (document.documentElement.dataset.theme ||
    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";

function chrome() {
  const chosen = chosenTheme.get();
  if (chosen === "dark" || chosen === "light") theme(chosen);
  put(
    document.getElementById("nav"),
    NAV.map((name) =>
      link(
        to(name),
        { "data-view": name, "data-test": `nav-${name || "sessions"}` },
        VIEWS.get(name)[0],
        name === "inbox" &&
          h("span", { id: "inbox-count", class: "badge", hidden: true, "aria-label": "waiting" }),
      ),
    ),
  );
  put(
    document.getElementById("tools"),
    settings.read_only && h("span", { class: "chip quiet", "data-test": "read-only" }, "read only"),
    button("◐", () => theme(dark() ? "light" : "dark"), {
      class: "button plain",
      "aria-label": "Light or dark",
      title: "Light or dark (t)",
      "data-test": "theme",
    }),
    button("?", help, {
      class: "button plain",
      "aria-label": "Keys and help",
      title: "Keys and help (?)",
      "data-test": "help",
    }),
  );
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    main.focus();
  });
}

const typing = (element) =>
  element &&
  (element.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName)) &&
  element.type !== "range" &&
  element.type !== "checkbox" &&
  element.type !== "radio";
let prefix = "";

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]"))
    return;
  if (event.key === "Escape" && typing(event.target)) {
    event.target.blur();
    return;
  }
  if (typing(event.target)) return;
  const key = prefix + event.key;
  prefix = "";
  if (event.key === "g" && key === "g") {
    prefix = "g ";
    setTimeout(() => {
      prefix = "";
    }, 1200);
    return;
  }
  const known = {
    "g s": () => go(""),
    "g i": () => go("inbox"),
    "g d": () => go("storage"),
    "g c": () => go("compare"),
    "?": help,
    t: () => theme(dark() ? "light" : "dark"),
  };
  const own = view?.keys?.[key];
  if (event.key === " " && /^(BUTTON|A|SUMMARY)$/.test(event.target.tagName)) return;
  if (event.key === "Enter" && /^(BUTTON|A|SUMMARY)$/.test(event.target.tagName)) return;
  if (event.target.type === "range" && /^Arrow/.test(event.key)) return;
  const act = own || known[key];
  const reads = event.target.closest?.("#panel, .file-view, .file-tree, .code, .wide, .waits");
  if (reads && (/^Arrow/.test(event.key) || event.key === " ")) return; // it scrolls
  if (act) {
    event.preventDefault();
    act(event);
  }
});

addEventListener("click", (event) => {
  const found = event.target.closest?.("a[href]");
  if (
    !found ||
    event.button ||
    event.ctrlKey ||
    event.metaKey ||
    event.shiftKey ||
    event.defaultPrevented ||
    found.target ||
    found.hasAttribute("download")
  )
    return;
  const where = new URL(found.href);
  if (where.origin !== base.origin || !where.pathname.startsWith(base.pathname)) return;
  const name = where.pathname.slice(base.pathname.length).replace(/\/+$/, "");
  if (!VIEWS.has(name)) return;
  event.preventDefault();
  if (where.href !== location.href) history.pushState({}, "", where);
  render();
});
addEventListener("popstate", render);

const events = {
  changed,
  lost(words) {
    banner.hidden = false;
    banner.className = "banner bad";
    put(banner, words);
  },
  back() {
    banner.className = "banner good";
    put(banner, "Connected again.");
    setTimeout(() => {
      if (banner.classList.contains("good")) banner.hidden = true;
    }, 2500);
    changed({ sessions: null, inbox: true });
  },
};

setInterval(() => {
  for (const one of document.querySelectorAll("time[datetime]")) {
    const words = ago(one.getAttribute("datetime"));
    if (one.textContent !== words) one.textContent = words;
  }
}, 15000);

// The view first: what is asked beside it would have it wait.
chrome();
render().finally(() => {
  count().catch(() => {}); // the view, or the banner, tells of a lost server
  follow(events);
});

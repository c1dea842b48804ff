// The chosen checkpoint: what it is, what can be done with it, and its parts in tabs.
import { bar, button, failure, h, link, loading, put, val } from "./dom.js";
import { get, settings } from "./api.js";
import { ago, moment, short } from "./format.js";
import { go, keep, notice, to } from "./main.js";
import * as actions from "./actions.js";

export const TABS = ["conversation", "state", "files", "tasks", "effects", "about"];
const MODULES = {
  conversation: () => import("./conversation.js"),
  state: () => import("./state.js"),
  files: () => import("./files.js"),
  tasks: () => import("./tasks.js"),
  effects: () => import("./effects.js"),
  about: () => import("./about.js"),
};

// `who` is the session, `holder()` who works on it, `isHead(id)` whether nothing came after, `graph`
// leads back to the list, and `turned` is called when another tab is shown.
export function pane({ who, given, holder, isHead, graph, turned }) {
  let tab = TABS.includes(given.tab) ? given.tab : TABS[0];
  let path = given.path || "";
  let at = null;
  let detail = null;
  let shown = null;
  let turn = 0;

  const facts = h("div", { class: "facts" });
  const body = h("div", { class: "tab-body", role: "tabpanel", id: "panel", tabindex: "0" });
  const tabs = h("div", {
    class: "tabs",
    role: "tablist",
    "aria-label": "Parts of the checkpoint",
  });
  const element = h("section", { class: "detail", "aria-label": "Checkpoint" }, facts, tabs, body);

  async function show(id) {
    turn += 1;
    const mine = turn;
    if (at !== null && at !== id) path = "";
    at = id;
    try {
      const answer = await get("checkpoint", { id });
      if (mine !== turn) return;
      detail = answer;
      at = answer.checkpoint.checkpoint_id;
      tell();
      await fill(mine);
    } catch (error) {
      if (mine !== turn) return;
      detail = null;
      put(facts);
      put(tabs);
      put(body, failure(error));
    }
  }

  function tell() {
    const it = detail.checkpoint;
    put(
      facts,
      link(
        to("session", who),
        {
          class: "back",
          click: (event) => {
            event.preventDefault();
            graph();
          },
        },
        "↑ graph",
      ),
      h(
        "div",
        { class: "fact-line" },
        h("h2", {}, val(it.step_name || "unnamed step", 160)),
        h(
          "span",
          { class: "quiet" },
          `#${it.step_index} · `,
          h("time", { datetime: it.created_at, title: moment(it.created_at) }, ago(it.created_at)),
          ` · ${short(it.checkpoint_id)}`,
        ),
        bar(detail.progress),
      ),
      h("div", { class: "buttons" }, deeds(it)),
    );
    put(tabs, TABS.map(knob));
    body.setAttribute("aria-labelledby", `tab-${tab}`);
  }

  function deeds(it) {
    const marked = actions.marked();
    const write = !settings.read_only;
    return [
      write &&
        button("Roll back here", () => actions.rollback(who, it, holder()), {
          disabled: isHead(at),
          title: isHead(at) ? "The session is here already" : "Roll back to this checkpoint (r)",
          "data-test": "action-rollback",
        }),
      write && button("Fork", () => actions.fork(it), { "data-test": "action-fork" }),
      write &&
        detail.workspace &&
        button("Restore files…", () => actions.restore(it), { "data-test": "action-restore" }),
      button(marked && marked !== at ? "Compare with marked" : "Compare", compare, {
        "data-test": "action-compare",
      }),
      button(marked === at ? "Marked" : "Mark", mark, {
        "data-test": "action-mark",
        "aria-pressed": String(marked === at),
        class: "button plain",
      }),
      write &&
        button("Expire…", () => actions.expire(it), {
          class: "button plain",
          "data-test": "action-expire",
        }),
    ];
  }

  function knob(name) {
    return h(
      "button",
      {
        type: "button",
        role: "tab",
        id: `tab-${name}`,
        "aria-controls": "panel",
        "aria-selected": String(name === tab),
        tabindex: name === tab ? 0 : -1,
        "data-test": `tab-${name}`,
        class: detail.has[name] === false ? "none" : null,
        click: () => pick(name),
        keydown: (event) => {
          const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (!by) return;
          event.preventDefault();
          event.stopPropagation();
          pick(TABS[(TABS.indexOf(tab) + by + TABS.length) % TABS.length]);
          document.getElementById(`tab-${tab}`).focus();
        },
      },
      name[0].toUpperCase() + name.slice(1),
    );
  }

  async function fill(mine) {
    const module = await MODULES[tab]();
    const fresh = h("div", {});
    const context = {
      id: at,
      who,
      detail,
      path,
      keep: (value) => {
        path = value;
        keep({ path: value });
      },
    };
    const slow = setTimeout(() => {
      if (mine === turn) put(body, loading());
    }, 150);
    try {
      const made = await module.show(fresh, context);
      if (mine !== turn) return;
      shown = made || {};
      put(body, fresh);
    } catch (error) {
      if (mine === turn) put(body, failure(error));
    } finally {
      clearTimeout(slow);
    }
  }

  function pick(name) {
    if (tab === name || !detail) return;
    tab = name;
    path = "";
    keep({ tab, path: "" });
    turn += 1;
    put(tabs, TABS.map(knob));
    body.setAttribute("aria-labelledby", `tab-${tab}`);
    turned();
    fill(turn);
  }

  function mark() {
    actions.mark(actions.marked() === at ? null : at);
    tell();
    if (actions.marked()) notice("Marked. Choose another checkpoint and compare.");
  }

  function compare() {
    const marked = actions.marked();
    const a = marked && marked !== at ? marked : detail.parent;
    if (a) go("compare", { a, b: at });
    else notice("It has no parent to compare with. Mark another checkpoint first.");
  }

  const written = (act) => () => {
    if (!settings.read_only && detail) act(detail.checkpoint);
  };
  const keys = {
    l: () => body.focus(),
    c: () => detail && compare(),
    m: () => detail && mark(),
    r: written((it) => !isHead(at) && actions.rollback(who, it, holder())),
    f: written(actions.fork),
  };
  TABS.forEach((name, index) => {
    keys[index + 1] = () => pick(name);
  });

  return {
    element,
    keys,
    show,
    pick,
    tab: () => tab,
    isAtTop: () => body.scrollTop < 40,
    // What was written since: children, calls, questions at the same checkpoint.
    async refresh() {
      if (!detail) return;
      const answer = await get("checkpoint", { id: at });
      if (answer.checkpoint.checkpoint_id !== at) return;
      detail = answer;
      tell();
      await shown?.refresh?.(detail);
    },
    close() {
      turn += 1;
    },
  };
}

// The chosen checkpoint: what it is, what can be done with it, and its parts in tabs.
import { bar, button, copy, failure, h, link, loading, patch, put, val } from "./dom.js";
import { get, settings } from "./api.js";
import { ago, moment, plural, short } from "./format.js";
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
// Pixels that a panel may be moved by before it counts as read.
const STILL = 40;

// `who` is the session, `holder()` who works on it, `isHead(id)` whether nothing came after, `graph`
// leads back to the list, `turn(id)` chooses another checkpoint, `turned` is called when another tab is
// shown, and `gone` when the checkpoint is not there any more.
export function pane({ who, given, holder, isHead, graph, turn, turned, gone }) {
  let tab = TABS.includes(given.tab) ? given.tab : TABS[0];
  let path = given.path || "";
  let at = null;
  let detail = null;
  let shown = null;
  let round = 0;
  let isTouched = false;
  let placedAt = 0;

  const facts = h("div", { class: "facts" });
  const newer = h("div", { class: "newer", role: "status" });
  const body = h("div", {
    class: "tab-body",
    role: "tabpanel",
    id: "panel",
    tabindex: "0",
    click: (event) => {
      if (event.target.closest("summary, button, a")) isTouched = true;
    },
  });
  const tabs = h("div", {
    class: "tabs",
    role: "tablist",
    "aria-label": "Parts of the checkpoint",
  });
  const element = h(
    "section",
    { class: "detail", "aria-label": "Checkpoint" },
    facts,
    newer,
    tabs,
    body,
  );
  // In a narrow window the page scrolls as a whole.
  const scroller = () =>
    getComputedStyle(body).overflowY === "visible" ? document.getElementById("main") : body;

  // Returns the whole id of what was chosen; null if it is not there.
  async function show(id) {
    round += 1;
    const mine = round;
    at = id;
    patch(newer);
    try {
      const answer = await get("checkpoint", { id });
      if (mine !== round) return at;
      detail = answer;
      at = answer.checkpoint.checkpoint_id;
      tell();
      await fill(mine);
      return at;
    } catch (error) {
      if (mine === round) lost(error);
      return null;
    }
  }

  function lost(error) {
    round += 1;
    detail = null;
    put(facts);
    put(tabs);
    put(body, failure(error));
  }

  function tell() {
    const it = detail.checkpoint;
    patch(
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
        ),
        copy(it.checkpoint_id, `the id ${it.checkpoint_id}`, short(it.checkpoint_id)),
        bar(detail.progress),
      ),
      h("div", { class: "buttons" }, deeds(it)),
    );
    patch(tabs, TABS.map(knob));
    body.setAttribute("aria-labelledby", `tab-${tab}`);
  }

  function deeds(it) {
    const marked = actions.mark.get();
    const write = !settings.read_only;
    return [
      write &&
        button("Roll back here", rollback, {
          disabled: isHead(at),
          title: isHead(at) ? "The session is here already" : "Roll back to this checkpoint (r)",
          "data-test": "action-rollback",
        }),
      write &&
        button("Fork", () => actions.fork(it), {
          title: "Begin a new session here (f)",
          "data-test": "action-fork",
        }),
      write &&
        detail.workspace &&
        button("Restore files…", () => actions.restore(it), { "data-test": "action-restore" }),
      button(marked && marked !== at ? "Compare with marked" : "Compare", compare, {
        title: "Compare with the checkpoint before, or with the marked one (c)",
        "data-test": "action-compare",
      }),
      button(marked === at ? "Marked" : "Mark", mark, {
        title: "Mark for compare (m)",
        "data-test": "action-mark",
        "aria-pressed": String(marked === at),
        class: "button plain",
      }),
      write &&
        button("Expire…", () => actions.expire(it, expired(detail.parent)), {
          class: "button plain",
          "data-test": "action-expire",
        }),
    ];
  }

  const rollback = () => actions.rollback(who, detail.checkpoint, holder(), turn);
  // Its parent is remembered: the removal may be seen here before it is answered.
  const expired = (parent) => () => (parent ? turn(parent) : gone());

  function knob(name) {
    const isNone = detail.has[name] === false;
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
        title: isNone ? "Nothing is kept of these" : null,
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
      scroller,
      keep: (value) => {
        path = value;
        keep({ path: value });
      },
    };
    const isFocused = body.contains(document.activeElement) && body !== document.activeElement;
    const slow = setTimeout(() => {
      if (mine === round) put(body, loading());
    }, 150);
    try {
      const made = await module.show(fresh, context);
      if (mine !== round) return;
      shown = made || {};
      put(body, fresh);
      isTouched = false;
      place();
      if (isFocused) body.focus({ preventScroll: true });
    } catch (error) {
      if (mine === round) put(body, failure(error));
    } finally {
      clearTimeout(slow);
    }
  }

  function place() {
    if (scroller() !== body) return;
    body.scrollTop = 0;
    shown?.place?.();
    placedAt = body.scrollTop;
  }

  function pick(name) {
    if (tab === name || !detail) return;
    tab = name;
    path = "";
    keep({ tab, path: "" });
    round += 1;
    patch(tabs, TABS.map(knob));
    document.getElementById(`tab-${tab}`).scrollIntoView({ inline: "nearest", block: "nearest" });
    body.setAttribute("aria-labelledby", `tab-${tab}`);
    turned();
    fill(round);
  }

  function mark() {
    actions.mark.set(actions.mark.get() === at ? null : at);
    tell();
    if (actions.mark.get()) notice("Marked. Choose another checkpoint and compare.");
  }

  function compare() {
    const marked = actions.mark.get();
    const other = marked && marked !== at ? marked : detail.parent;
    // The earlier one first: ids are in the order in which they were made.
    if (other) go("compare", { a: other < at ? other : at, b: other < at ? at : other });
    else notice("It has no parent to compare with. Mark another checkpoint first.");
  }

  const written = (act) => () => {
    if (!settings.read_only && detail) act(detail.checkpoint);
  };
  const keys = {
    l: () => body.focus(),
    c: () => detail && compare(),
    m: () => detail && mark(),
    r: written(() => !isHead(at) && rollback()),
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
    place,
    tab: () => tab,
    // Whether somebody reads here, so that another checkpoint must not take its place.
    isRead() {
      const selection = getSelection();
      const view = scroller();
      return (
        isTouched ||
        Boolean(path) ||
        tab === "state" ||
        tab === "files" ||
        Math.abs(view.scrollTop - (view === body ? placedAt : 0)) > STILL ||
        (!selection.isCollapsed && body.contains(selection.anchorNode))
      );
    },
    // Says that the session has gone on since.
    tellNewer(count, act) {
      patch(
        newer,
        count > 0 &&
          button(`${plural(count, "newer checkpoint")} · go to the newest`, act, {
            class: "button small",
            "data-test": "newer",
          }),
      );
    },
    // What was written since: children, calls, questions at the same checkpoint.
    async refresh() {
      if (!detail) return;
      const mine = round;
      try {
        const answer = await get("checkpoint", { id: at });
        if (mine !== round) return;
        detail = answer;
        tell();
        await shown?.refresh?.(detail);
      } catch (error) {
        if (error.status !== 404) throw error;
        if (mine === round) lost(error);
      }
    },
    close() {
      round += 1;
    },
  };
}

// Two checkpoints side by side: messages, state by path, files line by line.
import { button, chip, empty, failure, h, link, loading, long, put, val } from "./dom.js";
import { get } from "./api.js";
import { hunks } from "./diff_lines.js";
import * as exploration from "./exploration.js";
import { ago, bytes, kindOf, moment, number, plural, pretty } from "./format.js";
import { kept } from "./kept.js";
import { go, keep, to } from "./main.js";

const TABS = ["messages", "state", "files"];
const MOVES = ["changed", "added", "removed", "moved"];
const FILES = ["added", "removed", "modified", "mode", "renamed"];
const split = kept("split");
const isWide = () => matchMedia("(min-width: 701px)").matches;

export async function open(root, given) {
  if (given.exploration) return exploration.open(root, given);
  let tab = TABS.includes(given.tab) ? given.tab : "";
  let diff = null;
  const body = h("div", { role: "tabpanel", id: "compare-panel", tabindex: "0" });
  const sides = h("div", { class: "sides" });
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "What is compared" });
  const input = (name, label) =>
    h("input", {
      type: "text",
      value: given[name] || "",
      "aria-label": label,
      placeholder: `${label}: an id, session@, session@~3`,
      class: "search",
      spellcheck: "false",
      "data-test": `compare-${name}`,
    });
  const a = input("a", "From");
  const b = input("b", "To");
  const ask = (from, until) => go("compare", { a: from.trim(), b: until.trim(), tab });
  const form = h(
    "form",
    {
      class: "filters",
      submit: (event) => {
        event.preventDefault();
        ask(a.value, b.value);
      },
    },
    a,
    button("⇄", () => ask(b.value, a.value), { "aria-label": "Swap the two" }),
    b,
    h("button", { class: "button primary", "data-test": "compare-go" }, "Compare"),
  );

  function side(name, it) {
    return h(
      "div",
      { class: "card", "data-test": `side-${name}` },
      h(
        "div",
        { class: "fact-line" },
        link(
          to("session", { agent: it.agent_id, session: it.session_id, at: it.checkpoint_id }),
          {},
          h("strong", {}, val(it.step_name || "unnamed step", 120)),
        ),
        h("span", { class: "quiet" }, val(it.session_id, 80)),
      ),
      h(
        "div",
        { class: "quiet" },
        `#${it.step_index} · `,
        h("time", { datetime: it.created_at, title: moment(it.created_at) }, ago(it.created_at)),
        ` · ${bytes(it.size)}`,
        name === "b" && diff.new !== null ? `, ${bytes(diff.new)} not in the other` : "",
      ),
    );
  }

  const more = (name) => diff.cut[name] || 0;
  const counts = () => {
    const said = diff.messages;
    const listed = (names, of, prefix) =>
      names.reduce(
        (sum, name) =>
          sum + (of[name]?.length ?? Object.keys(of[name] || {}).length) + more(prefix + name),
        0,
      );
    return {
      messages: said ? listed(["added", "removed"], said, "messages.") : 0,
      state: listed(MOVES, diff, ""),
      files: diff.files ? listed(FILES, diff.files, "files.") : 0,
    };
  };

  function knobs() {
    const count = diff ? counts() : {};
    put(
      tabs,
      TABS.map((name) =>
        h(
          "button",
          {
            type: "button",
            role: "tab",
            id: `compare-tab-${name}`,
            "aria-controls": "compare-panel",
            "aria-selected": String(name === tab),
            tabindex: name === tab ? 0 : -1,
            "data-test": `compare-tab-${name}`,
            click: () => pick(name),
            keydown: (event) => {
              const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
              if (!by) return;
              event.preventDefault();
              pick(TABS[(TABS.indexOf(tab) + by + TABS.length) % TABS.length]);
              document.getElementById(`compare-tab-${tab}`).focus();
            },
          },
          name[0].toUpperCase() + name.slice(1),
          diff ? h("span", { class: "count" }, ` ${number(count[name])}`) : null,
        ),
      ),
    );
    body.setAttribute("aria-labelledby", `compare-tab-${tab}`);
  }

  function pick(name) {
    tab = name;
    keep({ tab });
    draw();
  }

  const left = (count) =>
    count ? h("p", { class: "note" }, `${number(count)} more are not shown.`) : null;

  function messages() {
    const said = diff.messages;
    if (!said || !(said.added.length + said.removed.length))
      return empty("The messages are the same.");
    const list = (some, kind, word) =>
      some.map((each) =>
        h(
          "li",
          { class: `message ${kind}`, "data-test": "message" },
          h("div", { class: "role" }, val(each.role, 40), chip(word, kindOf(word))),
          each.text ? long(each.text, { class: "prose" }) : null,
          each.calls.map((call) =>
            h(
              "div",
              { class: "fact-line" },
              h("span", { class: "tool" }, val(call.name, 80)),
              h("span", { class: "quiet brief" }, val(call.arguments, 300)),
            ),
          ),
        ),
      );
    return [
      h(
        "ol",
        { class: "messages" },
        list(said.removed, "minus", "removed"),
        list(said.added, "plus", "added"),
      ),
      left(more("messages.added") + more("messages.removed")),
    ];
  }

  function state() {
    const rows = [
      ...Object.entries(diff.changed).map(([path, it]) => [path, "changed", it.old, it.new]),
      ...Object.entries(diff.added).map(([path, it]) => [path, "added", undefined, it]),
      ...Object.entries(diff.removed).map(([path, it]) => [path, "removed", it, undefined]),
      ...Object.entries(diff.moved).map(([path, it]) => [path, "moved", path, it]),
    ];
    const kept = diff.hidden
      ? h(
          "p",
          { class: "quiet" },
          `${plural(diff.hidden, "change")} of what the framework keeps for itself: `,
          link(to("compare", { ...given, tab: "state", all: 1 }), {}, "show all"),
        )
      : null;
    if (!rows.length) return [empty("The state is the same."), kept];
    const value = (it) => (it === undefined ? "" : long(pretty(it), { class: "prose" }));
    const row = ([path, kind, old, now]) =>
      h(
        "tr",
        { "data-test": "state-change" },
        h("td", {}, h("code", {}, val(path, 300)), " ", chip(kind, kindOf(kind))),
        h("td", { class: old === undefined ? "" : "minus" }, value(old)),
        h("td", { class: now === undefined ? "" : "plus" }, value(now)),
      );
    return [
      kept,
      h(
        "table",
        { class: "thirds" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ["Path", "From", "To"].map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        h("tbody", {}, rows.map(row)),
      ),
      left(MOVES.reduce((sum, name) => sum + more(name), 0)),
    ];
  }

  // Each with its path as it is shown, and the refs by which it is asked for.
  function changedFiles() {
    const { files: shown, refs } = diff;
    return FILES.flatMap((kind) =>
      shown[kind].map((path, at) =>
        kind === "renamed"
          ? { kind, path: path[1], was: path[0], ref: refs[kind][at][1], old: refs[kind][at][0] }
          : { kind, path, ref: refs[kind][at] },
      ),
    );
  }

  function files() {
    const rows = diff.files ? changedFiles() : [];
    if (!rows.length) return empty("The files are the same.");
    const view = h("div", {
      class: "file-view",
      "data-test": "file-view",
      role: "region",
      "aria-label": "What changed in the file",
      tabindex: "0",
    });
    let chosen = null;
    async function show(file, knob) {
      for (const each of list.querySelectorAll("[aria-current]"))
        each.removeAttribute("aria-current");
      knob.setAttribute("aria-current", "true");
      chosen = () => show(file, knob);
      const mine = chosen;
      put(view, loading());
      try {
        const pair = { a: diff.from, b: diff.to, ref: file.ref, old_ref: file.old };
        const found = await get("file-diff", pair);
        if (mine === chosen) put(view, hunks(found, split.get() === "1" && isWide()));
      } catch (error) {
        if (mine === chosen) put(view, failure(error));
      }
    }
    const mode = button(
      "Side by side",
      () => {
        split.set(split.get() ? "" : "1");
        mode.setAttribute("aria-pressed", String(split.get() === "1"));
        chosen?.();
      },
      {
        class: "button small split-mode",
        "aria-pressed": String(split.get() === "1"),
        "data-test": "side-by-side",
      },
    );
    const knobs = rows.map((file) => {
      const knob = button(
        [
          h(
            "span",
            { class: "key" },
            file.was ? [val(file.was, 200), " → "] : null,
            val(file.path, 200),
          ),
          chip(file.kind, kindOf(file.kind)),
        ],
        () => show(file, knob),
        { class: "node", disabled: file.path.endsWith("/"), "data-test": "file-row" },
      );
      return knob;
    });
    const list = h(
      "ul",
      { class: "file-tree" },
      knobs.map((knob) => h("li", {}, knob)),
    );
    const first = knobs.find((knob) => !knob.disabled);
    if (first) first.click();
    else put(view, empty("Directories alone."));
    return [
      h("div", { class: "buttons" }, mode),
      h("div", { class: "file-split" }, list, view),
      left(FILES.reduce((sum, kind) => sum + more(`files.${kind}`), 0)),
    ];
  }

  function draw() {
    knobs();
    put(body, { messages, state, files }[tab]());
  }

  put(root, h("h1", {}, "Compare"), form, sides, tabs, body);
  tabs.hidden = true;
  if (!given.a && !given.b) {
    put(body, empty("Name two checkpoints, or choose Compare at a checkpoint of a session."));
  } else {
    try {
      diff = await get("diff", { a: given.a || given.b, b: given.a && given.b, all: given.all });
      const count = counts();
      tab = tab || TABS.find((name) => count[name]) || TABS[0];
      tabs.hidden = false;
      put(sides, side("a", diff.a), side("b", diff.b));
      draw();
    } catch (error) {
      put(body, failure(error));
    }
  }
  const asked = (from) => ["a", "b", "all", "exploration"].map((name) => from[name] || "").join();
  return {
    moved(now) {
      if (asked(now) !== asked(given)) return false;
      if (diff && now.tab !== tab && TABS.includes(now.tab)) pick(now.tab);
      return true;
    },
  };
}

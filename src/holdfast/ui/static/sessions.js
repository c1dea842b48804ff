// All sessions: searched, filtered, live.
import { bar, chip, empty, h, link, put, val, failure } from "./dom.js";
import { get } from "./api.js";
import { ago, kindOf, moment, number, plural, visible } from "./format.js";
import { go, keep, leave, listed, to } from "./main.js";
import { virtual } from "./virtual.js";

const CONDITIONS = [
  "running",
  "waiting",
  "failed",
  "unknown",
  "rolled back",
  "ended",
  "handed off",
  "stopped",
  "cut off",
];
const TIMES = [
  ["", "any time"],
  ["1", "last hour"],
  ["24", "last day"],
  ["168", "last week"],
  ["720", "last month"],
];
// How far the list was scrolled when it was left, and which of its rows was chosen.
let place = { top: 0, rows: 0, chosen: null };
const nameOf = (row) => `${row.agent_id}\n${row.session_id}`;
const narrow = () => matchMedia("(max-width: 700px)").matches;

export async function open(root, given) {
  const asked = {
    search: given.search || "",
    agent: given.agent || "",
    framework: given.framework || "",
    condition: given.condition || "",
    tag: given.tag || "",
    hours: given.hours || "",
  };
  const isBack = Object.keys(asked).every((name) => (listed()[name] || "") === asked[name]);
  const before = isBack ? place : { top: 0, rows: 0, chosen: null };
  let rows = [];
  let next = null;
  let chosen = -1;
  let busy = false;
  let turn = 0;
  let answered = 0; // the turn that is shown
  let asksAnew = false; // what is shown stays, and answers to keys, until the answer is there

  const parameters = () => ({
    search: asked.search,
    agent: asked.agent,
    framework: asked.framework,
    condition: asked.condition,
    tag: asked.tag ? asked.tag.split(/[\s,]+/).filter(Boolean) : [],
    since: asked.hours ? new Date(Date.now() - asked.hours * 3600000).toISOString() : "",
  });

  const summary = h("p", { class: "quiet", role: "status", "data-test": "summary" });
  const trouble = h("div", {});
  const list = virtual({
    height: narrow() ? 84 : 58,
    label: "Sessions",
    key: nameOf,
    isChosen: (row) => row === rows[chosen],
    near: more,
    draw,
    test: "sessions",
  });

  function draw(row, at) {
    const where = to("session", { agent: row.agent_id, session: row.session_id });
    const head = row.head || {};
    return h(
      "div",
      { class: `session-row${at === chosen ? " chosen" : ""}` },
      link(
        where,
        {
          class: "row-link",
          "data-test": "session-row",
          "data-session": row.session_id,
          click: () => {
            chosen = rows.indexOf(row);
          },
        },
        h(
          "span",
          { class: "who" },
          h("strong", { title: visible(row.session_id, 300) }, val(row.session_id, 120)),
          h(
            "span",
            { class: "quiet" },
            val(row.agent_id, 80),
            head.framework && head.framework !== "custom" && [" · ", val(head.framework, 40)],
          ),
        ),
        h(
          "span",
          { class: "step", title: visible(head.step_name || "", 300) },
          val(head.step_name || "unnamed step", 120),
        ),
        h(
          "span",
          { class: "chips" },
          (row.conditions || []).map((one) => chip(one, kindOf(one))),
        ),
        h("span", { class: "plan" }, bar(row.progress)),
        h(
          "span",
          { class: "when quiet", title: moment(head.created_at) },
          h("span", {}, plural(row.checkpoints, "checkpoint")),
          h("time", { datetime: head.created_at }, ago(head.created_at)),
        ),
      ),
    );
  }

  async function load() {
    turn += 1;
    const mine = turn;
    const limit = Math.min(500, Math.max(100, asksAnew ? 0 : rows.length, before.rows));
    let answer;
    try {
      answer = await get("sessions", { ...parameters(), limit });
    } finally {
      if (mine === turn) answered = mine;
    }
    if (mine !== turn) return;
    const was = rows[chosen] ? nameOf(rows[chosen]) : before.chosen;
    const fresh = answer.sessions;
    if (!asksAnew && rows.length > fresh.length && answer.next) {
      const have = new Set(fresh.map(nameOf));
      rows = fresh.concat(rows.filter((row) => !have.has(nameOf(row))));
    } else {
      rows = fresh;
      next = answer.next;
    }
    asksAnew = false;
    if (was) chosen = rows.findIndex((row) => nameOf(row) === was);
    options(agent, answer.agents || [], asked.agent, "all agents");
    options(framework, answer.frameworks || [], asked.framework, "all frameworks");
    summary.textContent = rows.length
      ? `${number(answer.total ?? rows.length)} ${answer.total === 1 ? "session" : "sessions"}`
      : "";
    put(
      trouble,
      !rows.length &&
        empty(
          Object.values(asked).some(Boolean)
            ? "No session fits. Take a filter away."
            : "No sessions yet. A first save makes one; it appears here by itself.",
        ),
    );
    list.box.hidden = !rows.length;
    list.set(rows);
  }

  // Not while the beginning is asked for: what comes behind it is only known then.
  async function more() {
    if (!next || busy || answered !== turn) return;
    busy = true;
    const mine = turn;
    try {
      const answer = await get("sessions", { ...parameters(), limit: 200, cursor: next });
      if (mine !== turn) return;
      const have = new Set(rows.map(nameOf));
      rows = rows.concat(answer.sessions.filter((row) => !have.has(nameOf(row))));
      next = answer.next;
      put(trouble);
      list.set(rows);
    } catch (error) {
      put(trouble, failure(error));
    } finally {
      busy = false;
      if (mine !== turn) list.set(rows); // the answer came too late: the end may still be in sight
    }
  }

  let timer = 0;
  function ask(name, value, wait = 0) {
    asked[name] = value;
    keep(asked);
    clearTimeout(timer);
    timer = setTimeout(() => {
      asksAnew = true;
      next = null;
      list.box.scrollTop = 0;
      load().catch((error) => put(trouble, failure(error)));
    }, wait);
  }

  function options(select, values, value, all) {
    const wanted = [["", all], ...values.map((one) => [one, one])];
    if (value && !values.includes(value)) wanted.push([value, value]);
    if (
      select.options.length === wanted.length &&
      wanted.every(([one], at) => select.options[at].value === one)
    )
      return;
    put(
      select,
      wanted.map(([one, words]) =>
        h("option", { value: one, selected: one === value }, val(words, 60).textContent),
      ),
    );
  }
  const select = (name, label, choices, test) => {
    const made = h(
      "select",
      { "aria-label": label, "data-test": test, change: () => ask(name, made.value) },
      choices.map(([value, words]) =>
        h("option", { value, selected: asked[name] === value }, words),
      ),
    );
    return made;
  };
  const search = h("input", {
    type: "search",
    class: "search",
    placeholder: "Search sessions, agents, newest steps, tags   /",
    "aria-label": "Search sessions",
    value: asked.search,
    "data-test": "search",
    input: () => ask("search", search.value, 150),
  });
  const agent = select("agent", "Agent", [["", "all agents"]], "filter-agent");
  const framework = select("framework", "Framework", [["", "all frameworks"]], "filter-framework");
  const condition = select(
    "condition",
    "Condition",
    [["", "any condition"], ...CONDITIONS.map((one) => [one, one])],
    "filter-condition",
  );
  const time = select("hours", "Time", TIMES, "filter-time");
  const tag = h("input", {
    type: "text",
    class: "tag",
    placeholder: "tag or tag=value",
    "aria-label": "Tag, as name or name=value",
    value: asked.tag,
    "data-test": "filter-tag",
    change: () => ask("tag", tag.value.trim()),
  });

  put(
    root,
    h("h1", { class: "hidden" }, "Sessions"),
    h(
      "div",
      { class: "filters", role: "search" },
      search,
      agent,
      framework,
      condition,
      tag,
      time,
      summary,
    ),
    trouble,
    list.box,
  );
  try {
    await load();
  } catch (error) {
    put(trouble, failure(error)); // the fields stay, so that it can be asked otherwise
    list.box.hidden = true;
  }

  const step = (by) => () => {
    if (!rows.length) return;
    chosen = Math.max(0, Math.min(rows.length - 1, chosen + by));
    list.again();
    list.focus(chosen);
  };
  const enter = () => {
    const row = rows[Math.max(0, chosen)];
    if (row) go("session", { agent: row.agent_id, session: row.session_id });
  };
  return {
    ready() {
      list.set(rows);
      list.box.scrollTop = before.top;
      if (before.chosen && chosen >= 0) list.focus(chosen);
    },
    refresh: load,
    moved(now) {
      return Object.keys(asked).every((name) => (now[name] || "") === asked[name]);
    },
    keys: {
      "/": () => search.focus(),
      j: step(1),
      k: step(-1),
      ArrowDown: step(1),
      ArrowUp: step(-1),
      Enter: enter,
      l: enter,
    },
    close() {
      leave(asked);
      place = {
        top: list.box.scrollTop,
        rows: rows.length,
        chosen: rows[chosen] ? nameOf(rows[chosen]) : null,
      };
      clearTimeout(timer);
      list.close();
    },
  };
}

// One session: its graph, and beside it the chosen checkpoint.
import { bar, button, chip, failure, h, link, patch, put, val } from "./dom.js";
import { get, settings } from "./api.js";
import { ago, kindOf, moment, number, plural, visible } from "./format.js";
import { film } from "./film.js";
import { drawing, lay } from "./graph.js";
import { go, keep, listed, ROWS, title, to } from "./main.js";
import { pane, TABS } from "./pane.js";
import { virtual } from "./virtual.js";
import { waiting } from "./waiting.js";
import * as actions from "./actions.js";

const HEIGHT = 46;
const LARGEST_PAGE = 500;
const ASKS = ["waiting", "unknown"];

export async function open(root, given) {
  if (!given.session)
    throw { title: "That cannot be asked", message: "This address names no session." };
  const who = { agent: given.agent, session: given.session };
  let about = null;
  let at = null;
  let rows = [];
  let own = [];
  let next = null;
  let width = 1;
  let busy = null;
  // The newest checkpoint, as somebody reads there while the session goes on.
  let left = null;

  const header = h("div", { class: "session-head" });
  const waits = waiting(
    (one) => one.session_id === who.session && one.agent_id === who.agent,
    () => refresh({ sessions: null }),
  );
  const list = virtual({
    height: HEIGHT,
    label: "Checkpoints, newest first",
    key: (row) => row.checkpoint_id,
    isChosen: (row) => row.checkpoint_id === at,
    near: () => more(),
    draw,
    test: "graph",
  });
  const reel = film({
    count: () => about.checkpoints,
    own: () => own,
    index: () => own.findIndex((row) => row.checkpoint_id === at),
    until: (many) => until(() => own.length >= many),
    choose: (row) => choose(row.checkpoint_id),
  });
  const side = pane({
    who,
    given,
    holder: () => about.holder,
    isHead: (id) => own.length > 0 && own[0].checkpoint_id === id,
    turn: (id) => choose(id, true),
    gone: () => go("", listed()),
    graph() {
      header.scrollIntoView();
      list.box.querySelector("[aria-current], a")?.focus();
    },
    turned: () => list.again(),
  });

  function draw(row) {
    const current = row.checkpoint_id === at;
    const branch = row.branch;
    const where = branch ? { agent: branch.agent_id, session: branch.session_id } : who;
    const name = row.step_name || "unnamed step";
    const tab = side.tab() === TABS[0] ? "" : side.tab();
    const click = (event) => {
      if (branch || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      choose(row.checkpoint_id, true);
    };
    return h(
      "div",
      { class: `checkpoint-row${current ? " chosen" : ""}${branch ? " of-branch" : ""}` },
      link(
        to("session", { ...where, at: row.checkpoint_id, tab }),
        {
          class: "row-link",
          "data-test": "checkpoint-row",
          "data-id": row.checkpoint_id,
          "aria-current": current ? "true" : null,
          click,
        },
        drawing(row, HEIGHT, width),
        h(
          "span",
          { class: "what" },
          h("span", { class: "name", title: visible(name, 300) }, val(name, 120)),
          h("span", { class: "quiet sub" }, subtitle(row)),
        ),
        h(
          "span",
          { class: "chips" },
          row.markers.filter((one) => one !== "fork").map((one) => chip(one, kindOf(one))),
        ),
      ),
    );
  }

  function subtitle(row) {
    const branch = row.branch;
    const files = row.files;
    return [
      branch
        ? [
            h("span", { class: "branch" }, `${branch.kind} `, val(branch.session_id, 60)),
            row.isLast && branch.more ? ` · ${number(branch.more)} older not shown` : "",
          ]
        : `#${row.step_index}`,
      " · ",
      h("time", { datetime: row.created_at, title: moment(row.created_at) }, ago(row.created_at)),
      files
        ? ` · ${plural(files.files, "file")}${files.added === null ? "" : ` +${files.added} −${files.removed}`}`
        : "",
      row.forks_hidden ? ` · ${plural(row.forks_hidden, "more fork")}` : "",
    ];
  }

  function arrange() {
    width = lay(rows);
    rows.forEach((row, index) => {
      row.isLast = row.branch?.session_id !== rows[index + 1]?.branch?.session_id;
    });
    own = rows.filter((row) => !row.branch);
    list.set(rows);
    list.again();
    reel.place();
  }

  function more(limit = ROWS) {
    if (!next) return null;
    busy =
      busy ||
      (async () => {
        try {
          const answer = await get("log", { ...who, limit, cursor: next });
          rows = joined(rows, answer.checkpoints);
          next = answer.next;
          arrange();
        } finally {
          busy = null;
        }
      })();
    return busy;
  }

  async function until(found) {
    while (!found() && next) await more(LARGEST_PAGE);
  }

  const place = () => rows.findIndex((row) => row.checkpoint_id === at);

  function turn(id) {
    at = id;
    list.again();
    if (place() >= 0) list.reveal(place());
    reel.place();
    return side.show(id);
  }

  async function choose(id, push = false) {
    if (id === at) return;
    left = null;
    if (push) history.pushState({}, "", location.href);
    keep({ ...who, at: id, tab: side.tab() });
    await turn(id);
  }

  function heading() {
    title(about.session_id);
    patch(
      header,
      h(
        "div",
        { class: "fact-line" },
        link(to("", listed()), { class: "crumbs", "data-test": "back" }, "← Sessions"),
        h("h1", {}, val(about.session_id, 160)),
        h("span", { class: "quiet" }, val(about.agent_id, 80)),
        h(
          "span",
          { class: "chips" },
          about.conditions.map((one) => chip(one, kindOf(one))),
        ),
        bar(about.progress),
        h("span", { class: "quiet" }, origin()),
        !settings.read_only &&
          (about.undo || about.origin) &&
          h("div", { class: "buttons" }, deeds()),
      ),
    );
  }

  const deeds = () => [
    about.undo &&
      button("Undo the last rollback", () => actions.undo(who, about.holder), {
        "data-test": "action-undo",
      }),
    about.origin &&
      button("Adopt into its origin…", () => actions.adopt(about), {
        class: "button plain",
        "data-test": "action-adopt",
      }),
  ];

  function origin() {
    const from = about.origin;
    return [
      plural(about.checkpoints, "checkpoint"),
      from && [
        " · from ",
        link(
          to("session", { agent: from.agent_id, session: from.session_id, at: from.checkpoint_id }),
          {},
          val(from.session_id, 80),
        ),
      ],
      about.holder && [" · held by ", val(about.holder, 120)],
      (about.exploration || rows.some((row) => row.branch?.kind === "exploration")) && [
        " · ",
        link(
          to("compare", { agent: about.agent_id, exploration: about.session_id }),
          { "data-test": "exploration" },
          "exploration",
        ),
      ],
    ];
  }

  // What the session waits for a person to decide, as the inbox has it.
  async function ask() {
    const isAsked = about.conditions.some((one) => ASKS.includes(one));
    waits.show(isAsked ? await get("inbox") : {});
  }

  put(
    root,
    header,
    waits.element,
    h(
      "div",
      { class: "split" },
      h("section", { class: "graph", "aria-label": "Checkpoints" }, reel.element, list.box),
      side.element,
    ),
  );
  const reading = get("log", { ...who, limit: ROWS });
  reading.catch(() => {}); // what the session says of itself goes before
  about = (await get("session", who)).session;
  who.agent = about.agent_id;
  heading();
  at = given.at || about.head.checkpoint_id;
  const showing = side.show(at);
  const asking = ask().catch(() => {}); // the inbox itself tells what is wrong with it
  const log = await reading;
  rows = log.checkpoints;
  next = log.next;
  arrange();
  heading();
  const whole = await showing;
  if (whole && whole !== at) {
    at = whole; // the address had the beginning of it, or a name
    keep({ at });
    arrange();
  }
  if (place() >= 0) list.reveal(place());
  await asking;

  async function refresh(what) {
    const was = at;
    const wasHead = own.length > 0 && at === own[0].checkpoint_id;
    const limit = Math.min(LARGEST_PAGE, Math.max(ROWS, own.length));
    let fresh = null;
    let log = null;
    try {
      [fresh, log] = await Promise.all([get("session", who), get("log", { ...who, limit })]);
    } catch (error) {
      if (error.status !== 404) throw error;
      put(
        root,
        failure(error),
        link(to("", listed()), { class: "button" }, "Back to the sessions"),
      );
      return;
    }
    about = fresh.session;
    heading();
    await ask();
    const had = rows.length;
    const last = rows.findIndex(
      (row) => row.checkpoint_id === log.checkpoints.at(-1)?.checkpoint_id,
    );
    const older = log.next && last >= 0 ? rows.slice(last + 1) : [];
    if (!older.length) next = log.next;
    rows = joined(log.checkpoints, older);
    const top = list.box.scrollTop;
    arrange();
    if (top > HEIGHT && rows.length > had) list.box.scrollTop = top + (rows.length - had) * HEIGHT;
    const hasMoved = wasHead && at === was && own.length > 0 && own[0].checkpoint_id !== at;
    if (hasMoved && !reel.isPlaying() && top <= HEIGHT && !side.isRead()) {
      await choose(own[0].checkpoint_id);
      return;
    }
    if (hasMoved) left = at;
    if (touches(what)) await side.refresh();
    side.tellNewer(left === at ? own.findIndex((row) => row.checkpoint_id === at) : 0, () =>
      choose(own[0].checkpoint_id, true),
    );
  }

  const touches = (what) =>
    what.sessions === null ||
    what.inbox ||
    what.sessions.some(([agent, session]) => session === who.session && agent === who.agent);

  const step = (by) => async () => {
    reel.stop();
    await until(() => place() >= 0);
    const index = own.findIndex((row) => row.checkpoint_id === at);
    await until(() => own.length > index + by);
    const row = own[index + by];
    if (row) choose(row.checkpoint_id);
  };

  return {
    ready() {
      list.set(rows);
      side.place();
      until(() => place() >= 0).then(() => {
        reel.place();
        list.again();
        if (place() > 0) list.reveal(place());
      });
    },
    refresh,
    moved(now) {
      if (now.session !== who.session || (now.agent && now.agent !== who.agent)) return false;
      side.pick(TABS.includes(now.tab) ? now.tab : TABS[0]);
      const wanted = now.at || own[0]?.checkpoint_id;
      if (wanted && wanted !== at) turn(wanted);
      return true;
    },
    keys: {
      ...side.keys,
      j: step(1),
      k: step(-1),
      ArrowDown: step(1),
      ArrowUp: step(-1),
      h: () => go("", listed()),
      Escape: reel.stop,
      " ": reel.toggle,
      u: () => !settings.read_only && about.undo && actions.undo(who, about.holder),
    },
    close() {
      reel.close();
      side.close();
      waits.close();
      list.close();
    },
  };
}

// Rows with those that follow and are not among them yet.
function joined(rows, others) {
  const have = new Set(rows.map((row) => row.checkpoint_id));
  return rows.concat(others.filter((row) => !have.has(row.checkpoint_id)));
}

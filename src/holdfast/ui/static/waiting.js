// What waits for a person, as cards: in the inbox all of it, in a session its own.
import { button, copy, h, link, long, patch, safely, val } from "./dom.js";
import { post, settings } from "./api.js";
import { ago, moment, plain, pretty } from "./format.js";
import { notice, to } from "./main.js";
import { decisions, signature } from "./effects.js";
import * as actions from "./actions.js";

// What is decided stays in its place for a while, and as long as the pointer is over the list: no card
// comes to be where another was a moment ago, under somebody's finger.
const STAYS = 3000;
const LONGEST = 20000;

const source = (one) =>
  link(
    to("session", { agent: one.agent_id, session: one.session_id }),
    {},
    val(one.session_id, 100),
  );
const time = (value) =>
  value && h("time", { class: "quiet", datetime: value, title: moment(value) }, ago(value));
const call = (one) => [
  h("strong", { class: "tool" }, val(one.tool, 80)),
  h("span", { class: "brief" }, val(signature(one), 200)),
  h("span", { class: "quiet" }, val(one.agent_id, 80)),
  source(one),
];
const args = (one) =>
  h(
    "details",
    {},
    h("summary", {}, "Arguments"),
    long(pretty({ args: one.args, kwargs: one.kwargs }), { class: "code" }),
  );

const approval = (one, again) => ({
  head: [call(one), time(one.asked_at)],
  more: args(one),
  deeds: [
    button(
      "Approve",
      async ({ currentTarget: knob }) => {
        knob.disabled = true;
        try {
          await post("approve", { id: one.id });
          notice(["Approved: ", val(one.text, 120)]);
          await again();
        } catch (error) {
          notice(error.message, { kind: "bad", stay: true });
          knob.disabled = false;
        }
      },
      { class: "button primary", "data-test": "inbox-approve" },
    ),
    button("Edit arguments…", () => actions.approve(one, again), { "data-test": "inbox-edit" }),
    button("Deny…", () => actions.deny(one, again), { "data-test": "inbox-deny" }),
  ],
});

const unknown = (one, again) => ({
  head: [call(one), time(one.started_at)],
  more: [one.reason && h("p", {}, val(one.reason, 500)), args(one)],
  deeds: decisions(one, again),
});

const interrupt = (one) => ({
  head: [h("strong", {}, val(one.node || one.id || "interrupt", 80)), source(one)],
  more: [
    h("p", {}, val(plain(one.value), 500)),
    h(
      "p",
      { class: "id" },
      h("code", {}, val(one.resume, 500)),
      copy(one.resume, "the command that resumes"),
    ),
  ],
});

const offer = (one, again) => ({
  head: [
    h("strong", {}, val(one.from_agent, 80), " → ", val(one.to_agent, 80)),
    link(
      to("session", {
        agent: one.from_agent,
        session: one.from_session,
        at: one.checkpoint_id,
      }),
      {},
      val(one.from_session, 80),
    ),
    time(one.offered_at),
  ],
  more: one.contract && h("p", { class: "quiet" }, val(one.contract, 300)),
  deeds: [
    button("Accept…", () => actions.acceptOffer(one, again), {
      class: "button primary",
      "data-test": "inbox-accept",
    }),
    button("Reject…", () => actions.rejectOffer(one, again), { "data-test": "inbox-reject" }),
  ],
});

// Each kind: its heading, where it is in the answer, how a card of it is made, and what tells it apart.
const KINDS = [
  ["Waiting for approval", "approvals", approval, (one) => one.id, "approval"],
  ["Calls of unknown end", "unknown", unknown, (one) => one.id, "unknown"],
  [
    "Open interrupts",
    "interrupts",
    interrupt,
    (one) => `${one.session_id} ${one.id} ${one.node}`,
    "interrupt",
  ],
  ["Handoffs", "offers", offer, (one) => one.checkpoint_id, "offer"],
];
const MOST = 300;

function card(row, again) {
  const draw = () => {
    const { head, more, deeds } = row.make(row.one, again);
    const isOver = row.over > 0;
    return [
      h("div", { class: "fact-line" }, head),
      more,
      isOver
        ? h("p", { class: "quiet" }, "Decided.")
        : !settings.read_only && deeds && h("div", { class: "buttons" }, deeds),
    ];
  };
  return h(
    "li",
    {
      class: row.over ? "card over" : "card",
      "data-test": row.over ? "decided" : row.test,
      "data-key": row.key,
    },
    safely(draw),
  );
}

// `show(all)` draws an answer of the inbox, as far as it `fits`; `again` asks for the next one.
export function waiting(fits, again) {
  const element = h("div", { class: "waits" });
  const known = new Map(KINDS.map(([name]) => [name, []]));
  let timer = 0;

  function merged(name, list, make, idOf, test) {
    const now = Date.now();
    const fresh = new Map(
      list
        .filter(fits)
        .slice(0, MOST)
        .map((one) => [idOf(one), one]),
    );
    const rows = [];
    for (const row of known.get(name)) {
      const one = fresh.get(row.key);
      fresh.delete(row.key);
      if (one) rows.push({ ...row, one, over: 0 });
      else if (!row.over) rows.push({ ...row, over: now });
      else if (now - row.over < STAYS || (isPointedAt() && now - row.over < LONGEST))
        rows.push(row);
    }
    for (const [key, one] of fresh) rows.push({ key, one, make, test, over: 0 });
    known.set(name, rows);
    return rows;
  }
  const isPointedAt = () => element.matches(":hover");

  function show(all) {
    clearTimeout(timer);
    const sections = KINDS.map(([name, field, make, idOf, test]) => [
      name,
      merged(name, all[field] || [], make, idOf, test),
    ]).filter(([, rows]) => rows.length);
    patch(
      element,
      sections.map(([name, rows]) =>
        h(
          "section",
          { "data-key": name },
          h(
            "h2",
            {},
            `${name} `,
            h("span", { class: "quiet" }, rows.filter((row) => !row.over).length),
          ),
          h(
            "ul",
            { class: "cards" },
            rows.map((row) => card(row, again)),
          ),
        ),
      ),
    );
    if (sections.some(([, rows]) => rows.some((row) => row.over)))
      timer = setTimeout(() => show(all), STAYS);
    return sections.length;
  }

  return { element, show, close: () => clearTimeout(timer) };
}

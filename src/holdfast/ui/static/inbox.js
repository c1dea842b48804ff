// What waits for a person.
import { button, copy, empty, failure, h, link, long, put, val } from "./dom.js";
import { get, post, settings } from "./api.js";
import { ago, moment, plain, pretty } from "./format.js";
import { notice, to } from "./main.js";
import { decisions, signature } from "./effects.js";
import * as actions from "./actions.js";

export async function open(root) {
  const trouble = h("div", {});
  const body = h("div", {});
  const source = (one) =>
    link(
      to("session", { agent: one.agent_id, session: one.session_id }),
      {},
      val(one.session_id, 100),
    );
  const time = (value) => value && h("time", { class: "quiet", title: moment(value) }, ago(value));
  const quick = (verb, sent, words) => async (event) => {
    event.target.disabled = true;
    try {
      await post(verb, sent);
      put(trouble);
      notice(words);
      await draw();
    } catch (error) {
      put(trouble, failure(error));
      event.target.disabled = false;
    }
  };
  const card = (test, head, more, buttons) =>
    h(
      "li",
      { class: "card", "data-test": test },
      h("div", { class: "fact-line" }, head),
      more,
      !settings.read_only && buttons ? h("div", { class: "buttons" }, buttons) : null,
    );
  const call = (one) => [
    h("strong", { class: "tool" }, val(one.tool, 80)),
    h("span", { class: "brief" }, val(signature(one), 200)),
    source(one),
  ];
  const args = (one) =>
    h(
      "details",
      {},
      h("summary", {}, "Arguments"),
      long(pretty({ args: one.args, kwargs: one.kwargs }), { class: "code" }),
    );

  async function draw() {
    const all = await get("inbox");
    const parts = [
      [
        "Waiting for approval",
        all.approvals,
        (one) =>
          card("approval", [call(one), time(one.asked_at)], args(one), [
            button("Approve", quick("approve", { id: one.id }, "Approved."), {
              class: "button primary",
              "data-test": "inbox-approve",
            }),
            button("Edit arguments…", () => actions.approve(one, draw), {
              "data-test": "inbox-edit",
            }),
            button("Deny…", () => actions.deny(one, draw), { "data-test": "inbox-deny" }),
          ]),
      ],
      [
        "Calls of unknown end",
        all.unknown,
        (one) =>
          card(
            "unknown",
            [call(one), time(one.started_at)],
            [one.reason && h("p", {}, val(one.reason, 500)), args(one)],
            decisions(one, draw),
          ),
      ],
      [
        "Open interrupts",
        all.interrupts,
        (one) =>
          card(
            "interrupt",
            [h("strong", {}, val(one.node || one.id || "interrupt", 80)), source(one)],
            [
              h("p", {}, val(plain(one.value), 500)),
              h(
                "p",
                { class: "id" },
                h("code", {}, val(one.resume, 500)),
                copy(one.resume, "the command that resumes"),
              ),
            ],
          ),
      ],
      [
        "Handoffs",
        all.offers,
        (one) =>
          card(
            "offer",
            [
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
            one.contract && h("p", { class: "quiet" }, val(one.contract, 300)),
            [
              button("Accept", quick("accept-offer", { id: one.checkpoint_id }, "Accepted."), {
                class: "button primary",
                "data-test": "inbox-accept",
              }),
              button(
                "Reject",
                () =>
                  actions.ask({
                    title: "Reject the handoff",
                    verb: "reject-offer",
                    preview: false,
                    confirm: "Reject",
                    fields: [{ name: "reason", label: "Reason", test: "inbox-reason" }],
                    body: (given) => ({ id: one.checkpoint_id, reason: given.reason }),
                    done: async () => {
                      notice("Rejected.");
                      await draw();
                    },
                  }),
                { "data-test": "inbox-reject" },
              ),
            ],
          ),
      ],
    ].filter(([, list]) => list && list.length);
    put(
      trouble,
      all.damaged.map((words) => failure({ title: "Damaged", message: words })),
    );
    const opened = [...body.querySelectorAll("details")].map((one) => one.open);
    put(
      body,
      parts.length
        ? parts.map(([name, list, one]) =>
            h(
              "section",
              {},
              h("h2", {}, `${name} `, h("span", { class: "quiet" }, list.length)),
              h("ul", { class: "cards" }, list.slice(0, 300).map(one)),
            ),
          )
        : empty("Nothing waits for you."),
    );
    body.querySelectorAll("details").forEach((one, at) => {
      one.open = Boolean(opened[at]);
    });
  }
  await draw();
  put(root, h("h1", {}, "Inbox"), trouble, body);
  return { refresh: draw, moved: () => true };
}

// What a person does: a preview first, then the deed, then the way back.
import { button, failure, h, link, loading, put, val } from "./dom.js";
import { post } from "./api.js";
import { number, plain, plural, short, visible } from "./format.js";
import { kept } from "./kept.js";
import { go, notice, to } from "./main.js";

export const mark = kept("mark", () => sessionStorage);

// What is slow to preview is looked at once its field is left, not with every letter.
function field(one, changed, touched) {
  const change = () => changed(one);
  if (one.choices) {
    return h(
      "fieldset",
      {},
      h("legend", {}, one.label),
      one.choices.map(([value, words], at) =>
        h(
          "label",
          { class: "choice" },
          h("input", {
            type: "radio",
            name: one.name,
            value,
            checked: at === 0,
            change,
            "data-test": `field-${one.name}-${value}`,
          }),
          words,
        ),
      ),
    );
  }
  if (one.flag)
    return h(
      "label",
      { class: "choice", hidden: Boolean(one.later) },
      h("input", { type: "checkbox", name: one.name, change, "data-test": `field-${one.name}` }),
      one.label,
    );
  const test = one.test || `field-${one.name}`;
  return h(
    "label",
    { class: "field" },
    h("span", {}, one.label),
    one.area
      ? h("textarea", {
          name: one.name,
          rows: one.rows || 6,
          spellcheck: "false",
          "data-test": test,
          input: change,
          value: one.value || "",
        })
      : h("input", {
          type: "text",
          name: one.name,
          value: one.value || "",
          placeholder: one.placeholder,
          autocomplete: "off",
          "data-test": test,
          [one.slow ? "change" : "input"]: change,
          ...(one.slow ? { input: () => touched() } : {}),
        }),
  );
}

// One dialog for all verbs. `body(values)` is what is sent; `preview` says whether a dry run exists.
export function ask({
  title,
  words,
  verb,
  fields = [],
  body,
  preview = true,
  describe = summary,
  confirm,
  danger = false,
  ready = () => true,
  done,
}) {
  const shown = h("div", { class: "preview-box", "aria-live": "polite", "data-test": "preview" });
  const form = h("form", { method: "dialog" });
  let turn = 0;
  let timer = 0;
  const values = () => {
    const given = {};
    for (const one of fields) {
      const found = form.elements[one.name];
      given[one.name] = one.flag ? found.checked : found.value;
    }
    return given;
  };
  async function look() {
    turn += 1;
    const mine = turn;
    sure.disabled = true;
    try {
      if (!ready(values())) {
        put(shown);
        return;
      }
      const sent = body(values());
      if (preview) {
        put(shown, loading());
        const answer = await post(verb, { ...sent, dry_run: true });
        if (mine !== turn) return;
        put(shown, describe(answer));
      } else put(shown);
      sure.disabled = false;
    } catch (error) {
      if (mine === turn) refused(error);
    }
  }
  function refused(error) {
    put(shown, failure(error));
    const flag = error.unless && form.elements[error.unless];
    if (flag) flag.closest("label").hidden = false;
  }
  async function act() {
    sure.disabled = true;
    sure.setAttribute("aria-busy", "true");
    put(shown, h("p", { class: "quiet" }, "Working…"));
    try {
      const answer = await post(verb, body(values()));
      box.close();
      await done?.(answer, values());
    } catch (error) {
      refused(error);
      sure.disabled = false;
      sure.removeAttribute("aria-busy");
    }
  }
  function touched() {
    clearTimeout(timer);
    turn += 1;
    put(shown);
    sure.disabled = true;
  }
  const sure = h(
    "button",
    {
      type: "submit",
      class: danger ? "button primary danger" : "button primary",
      "data-test": "dialog-confirm",
      disabled: true,
    },
    confirm || title,
  );
  const box = h(
    "dialog",
    {
      class: "dialog",
      "aria-labelledby": "dialog-title",
      "data-test": "dialog",
      close: () => {
        clearTimeout(timer);
        box.remove();
      },
    },
    h("h2", { id: "dialog-title" }, title),
    words && h("div", {}, words),
    form,
  );
  put(
    form,
    fields.map((one) =>
      field(
        one,
        (which) => {
          touched();
          timer = setTimeout(look, which.flag || which.choices || which.slow ? 0 : 250);
        },
        touched,
      ),
    ),
    shown,
    h(
      "div",
      { class: "buttons end" },
      button("Cancel", () => box.close(), { "data-test": "dialog-cancel" }),
      sure,
    ),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!sure.disabled) act();
  });
  document.body.append(box);
  box.showModal();
  look();
}

const some = (title, list) =>
  list && list.length
    ? h(
        "details",
        {},
        h("summary", {}, `${title}: ${number(list.length)}`),
        h(
          "ul",
          { class: "plain" },
          list
            .slice(0, 200)
            .map((one) => h("li", {}, val(typeof one === "string" ? one : plain(one), 300))),
        ),
      )
    : null;

function summary(answer) {
  const files = answer.files ?? ("written" in answer ? answer : null);
  const named = (ids) => ids?.map((id) => answer.calls?.[id] || id);
  return h(
    "div",
    {},
    "changes" in answer &&
      h(
        "p",
        {},
        answer.changes
          ? `${plural(answer.changes, "value")} of the state would change.`
          : "The state would stay as it is.",
      ),
    files && files.written?.length === 0 && !files.removed.length
      ? h("p", {}, "The files would stay as they are.")
      : null,
    files && files.written === null ? h("p", {}, "All files would be written.") : null,
    files && some("Files written", files.written),
    files && some("Files removed", files.removed),
    some("Calls undone", named(answer.undone)),
    some("Cannot be undone", named(answer.remaining)),
    answer.problems && Object.keys(answer.problems).length
      ? h("p", { class: "bad" }, val(plain(answer.problems), 1000))
      : null,
    answer.adopted && h("p", {}, `It would go on from ${short(answer.adopted)}.`),
    answer.workspace && h("p", { class: "quiet" }, "In ", val(answer.workspace, 300)),
  );
}

// Asked for only where it was refused without: see `later` in ask().
const TAKEOVER = {
  name: "takeover",
  label: "Take the session over: its process was not heard of for long",
  flag: true,
  later: true,
};
const ACCEPT = {
  name: "accept_irreversible",
  label: "Go back although some calls cannot be undone",
  flag: true,
  later: true,
};
const heldBy = (holder) =>
  holder && h("p", { class: "note" }, "Now held by ", val(holder, 200), ".");
export const rollback = (who, it, holder, turn) =>
  ask({
    title: "Roll back",
    words: [
      `To #${it.step_index} `,
      val(it.step_name || short(it.checkpoint_id), 120),
      ". What came after is kept.",
      heldBy(holder),
    ],
    verb: "rollback",
    confirm: "Roll back",
    fields: [
      {
        name: "scope",
        label: "What goes back",
        choices: [
          ["all", "state and files"],
          ["state", "state only"],
          ["files", "files only"],
        ],
      },
      ACCEPT,
      TAKEOVER,
    ],
    body: (given) => ({ id: it.checkpoint_id, ...who, ...given }),
    done: async (done) => {
      notice("Rolled back.", { undo: () => undo(who, null, { head: done.checkpoint_id }) });
      await turn(done.checkpoint_id);
    },
  });
// `last` says which rollback: of what the session did since, the undo takes nothing back.
export const undo = (who, holder, last = {}) =>
  ask({
    title: "Undo the last rollback",
    words: heldBy(holder),
    verb: "undo",
    confirm: "Undo",
    fields: [ACCEPT, TAKEOVER],
    body: (given) => ({ ...who, ...given, ...last }),
    done: () => notice("Undone."),
  });
export const fork = (it) =>
  ask({
    title: "Fork",
    words: "A new session begins at this checkpoint. Nothing else changes.",
    verb: "fork",
    preview: false,
    fields: [{ name: "name", label: "Name of the new session (may be left empty)" }],
    body: ({ name }) => ({ id: it.checkpoint_id, ...(name.trim() ? { name: name.trim() } : {}) }),
    done(answer) {
      notice(["Forked as ", val(answer.session_id, 80), "."]);
      go("session", { agent: answer.agent_id, session: answer.session_id });
    },
  });
export const restore = (it) =>
  ask({
    title: "Restore files",
    words: "The files of this checkpoint are put into a directory.",
    verb: "restore",
    confirm: "Restore",
    ready: (given) => given.directory.trim(),
    fields: [
      { name: "directory", label: "Directory", placeholder: "/path/to/directory", slow: true },
    ],
    body: (given) => ({ id: it.checkpoint_id, directory: given.directory.trim() }),
    done: () => notice("Files restored."),
  });
export const adopt = (about) =>
  ask({
    title: "Adopt into its origin",
    words: [
      val(about.origin.session_id, 80),
      " goes on from the head of ",
      val(about.session_id, 80),
      ".",
    ],
    verb: "adopt",
    confirm: "Adopt",
    fields: [TAKEOVER],
    body: (given) => ({
      agent: about.origin.agent_id,
      session: about.origin.session_id,
      from_agent: about.agent_id,
      from_session: about.session_id,
      ...given,
    }),
    done: () => {
      notice("Adopted.");
      go("session", { agent: about.origin.agent_id, session: about.origin.session_id });
    },
  });
export const expire = (it, after) =>
  ask({
    title: "Expire this checkpoint",
    words: "It is removed now and cannot be brought back.",
    verb: "expire",
    confirm: "Expire",
    danger: true,
    body: () => ({ id: it.checkpoint_id }),
    describe: (answer) =>
      h("p", {}, "Would be removed: ", val(answer.checkpoint?.step_name || it.checkpoint_id, 120)),
    done: async () => {
      notice("Expired.");
      await after();
    },
  });

// The whole call, and whose it is: who decides of one decides of that.
const called = (call) => [
  h("p", { class: "code" }, visible(call.text || call.tool, 2000, false)),
  h("p", { class: "quiet" }, val(call.agent_id, 80), " / ", val(call.session_id, 120)),
];

export const resolve = (call, outcome, after) =>
  ask({
    title: { done: "The call was done", failed: "The call failed", retry: "Try the call again" }[
      outcome
    ],
    words: [
      called(call),
      outcome === "retry" &&
        h("p", { class: "note" }, "If it took place after all, it will have taken place twice."),
    ],
    verb: "resolve",
    preview: false,
    confirm: "Record this",
    fields: [
      ...(outcome === "done"
        ? [
            {
              name: "value",
              label: "What it returned, as JSON (may be left empty)",
              area: true,
              rows: 3,
            },
          ]
        : outcome === "failed"
          ? [{ name: "reason", label: "Why it failed", test: "inbox-reason" }]
          : []),
      TAKEOVER,
    ],
    body: (given) => ({
      id: call.id,
      outcome,
      takeover: given.takeover,
      ...(given.reason ? { reason: given.reason } : {}),
      ...(outcome === "done" && given.value.trim() ? { value_text: given.value } : {}),
    }),
    done: async () => {
      notice("Noted.");
      await after?.();
    },
  });

// As it can be read and edited, and still the same JSON.
const written = (text) => visible(text, Infinity, false);
export const approve = (call, after) =>
  ask({
    title: "Approve with other arguments",
    words: called(call),
    verb: "approve",
    preview: false,
    confirm: "Approve",
    fields: [
      {
        name: "args",
        label: "Arguments by position, a JSON list",
        area: true,
        rows: 3,
        value: written(call.args_text),
        test: "inbox-args",
      },
      {
        name: "kwargs",
        label: "Arguments by name, a JSON object",
        area: true,
        rows: 6,
        value: written(call.kwargs_text),
        test: "inbox-kwargs",
      },
      { name: "reason", label: "Reason (may be left empty)", test: "inbox-reason" },
    ],
    body: (given) => ({
      id: call.id,
      args_text: given.args,
      kwargs_text: given.kwargs,
      ...(given.reason ? { reason: given.reason } : {}),
    }),
    done: async () => {
      notice("Approved.");
      await after?.();
    },
  });
export const deny = (call, after) =>
  ask({
    title: "Deny",
    words: called(call),
    verb: "deny",
    preview: false,
    confirm: "Deny",
    danger: true,
    ready: (given) => given.reason.trim(),
    fields: [{ name: "reason", label: "Reason, which the agent is told", test: "inbox-reason" }],
    body: (given) => ({ id: call.id, reason: given.reason }),
    done: async () => {
      notice("Denied.");
      await after?.();
    },
  });

const DEFAULT_LEASE = "5 minutes";
export const acceptOffer = (offer, after) =>
  ask({
    title: "Accept the handoff",
    words: [
      "A new session of ",
      val(offer.to_agent, 80),
      ` begins with it. The offer is taken for ${DEFAULT_LEASE}; after that, unless the work is told to be done or goes on, others may take it.`,
    ],
    verb: "accept-offer",
    preview: false,
    confirm: "Accept",
    body: () => ({ id: offer.checkpoint_id }),
    done: async ({ offer: taken }) => {
      notice([
        "Accepted: ",
        link(
          to("session", { agent: taken.to_agent, session: taken.session_id }),
          {},
          val(taken.session_id, 80),
        ),
      ]);
      await after();
    },
  });
export const rejectOffer = (offer, after) =>
  ask({
    title: "Reject the handoff",
    words: [val(offer.from_agent, 80), " → ", val(offer.to_agent, 80)],
    verb: "reject-offer",
    preview: false,
    confirm: "Reject",
    fields: [{ name: "reason", label: "Reason", test: "inbox-reason" }],
    body: (given) => ({ id: offer.checkpoint_id, reason: given.reason }),
    done: async () => {
      notice("Rejected.");
      await after();
    },
  });

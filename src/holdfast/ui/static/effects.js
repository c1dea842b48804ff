// Tool calls, and what became of them.
import { button, chip, empty, h, long, patch, put, safely, val } from "./dom.js";
import { get, settings } from "./api.js";
import { ago, instant, kindOf, moment, plain, pretty } from "./format.js";
import { resolve } from "./actions.js";

const PAGE = 100;
const LARGEST_PAGE = 500;

// The arguments of a call as Python writes them: what stands behind its name.
export const signature = (call) =>
  call.text.startsWith(call.tool) ? call.text.slice(call.tool.length) : call.text;

// What became of a call, in a word.
function became(effect) {
  if (effect.unknown) return "unknown";
  if (effect.running) return "running";
  if (effect.compensated) return "undone";
  return effect.status === "started" ? "cut off" : effect.status;
}

const OUTCOMES = [
  ["done", "It was done"],
  ["failed", "It failed"],
  ["retry", "Try it again"],
];
export const decisions = (call, again) =>
  OUTCOMES.map(([outcome, words]) =>
    button(words, () => resolve(call, outcome, again), { "data-test": `inbox-${outcome}` }),
  );

function one(effect, again) {
  const word = became(effect);
  return h(
    "li",
    { class: "effect", "data-test": "effect", "data-status": word, "data-key": effect.id },
    safely(() => told(effect, word, again)),
  );
}

function told(effect, word, again) {
  const when = instant(effect.started_at);
  const part = (label, value, kind = "code") =>
    value !== undefined &&
    value !== null && [h("div", { class: "label" }, label), long(pretty(value), { class: kind })];
  return h(
    "details",
    { open: effect.unfinished || effect.status === "failed" },
    h(
      "summary",
      {},
      chip(word, kindOf(word)),
      h("span", { class: "tool" }, val(effect.tool, 80)),
      h("span", { class: "quiet brief" }, val(signature(effect), 160)),
      chip(effect.kind, effect.standing ? "warn" : "quiet"),
      effect.unfinished && word === "done" ? chip("in no checkpoint yet", "warn") : null,
      when && h("time", { class: "quiet", datetime: when, title: moment(when) }, ago(when)),
    ),
    part("Arguments", { args: effect.args ?? [], kwargs: effect.kwargs ?? {} }),
    part("Output", effect.output),
    part("Error", effect.error && plain(effect.error), "code bad"),
    effect.reason ? h("p", {}, "Reason: ", val(plain(effect.reason), 500)) : null,
    effect.compensate
      ? h(
          "p",
          { class: "quiet" },
          effect.compensated ? "Undone by " : "Would be undone by ",
          h("code", {}, val(effect.compensate, 200)),
        )
      : null,
    effect.reused ? h("p", { class: "quiet" }, "Its output is that of an equal call.") : null,
    effect.edited ? h("p", { class: "quiet" }, "Approved with other arguments.") : null,
    effect.unknown && !settings.read_only
      ? h("div", { class: "buttons" }, decisions(effect, again))
      : null,
  );
}

export async function show(box, { id }) {
  let all = false;
  const list = h("ol", { class: "effects" });
  const foot = h("div", { class: "buttons" });
  let made = [];
  async function load(cursor, limit = PAGE) {
    const answer = await get("effects", { id, all: all ? 1 : "", cursor, limit });
    made = cursor ? made.concat(answer.effects) : answer.effects;
    patch(
      list,
      made.map((effect) => one(effect, draw)),
      !made.length &&
        h(
          "li",
          {},
          empty(all ? "This session made no recorded calls." : "No calls since the parent."),
        ),
    );
    patch(
      foot,
      answer.next && button("Show more", () => load(answer.next), { "data-test": "more" }),
    );
  }
  const draw = () => load(undefined, Math.min(LARGEST_PAGE, Math.max(PAGE, made.length)));
  const toggle = button(
    "All calls of the session",
    () => {
      all = !all;
      toggle.setAttribute("aria-pressed", String(all));
      load();
    },
    { class: "button small", "aria-pressed": "false", "data-test": "effects-all" },
  );
  put(box, h("div", { class: "buttons" }, toggle), list, foot);
  await load();
  return { refresh: draw };
}

// Tool calls, and what became of them.
import { button, chip, empty, h, long, put, val } from "./dom.js";
import { get, settings } from "./api.js";
import { ago, instant, kindOf, moment, plain, pretty } from "./format.js";
import { resolve } from "./actions.js";

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

export const OUTCOMES = [
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
  const when = instant(effect.started_at);
  const part = (label, value, kind = "code") =>
    value !== undefined &&
    value !== null && [h("div", { class: "label" }, label), long(pretty(value), { class: kind })];
  return h(
    "li",
    { class: "effect", "data-test": "effect", "data-status": word },
    h(
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
        when && h("time", { class: "quiet", title: moment(when) }, ago(when)),
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
    ),
  );
}

export async function show(box, { id }) {
  let all = false;
  const list = h("ol", { class: "effects" });
  const foot = h("div", { class: "buttons" });
  async function load(cursor) {
    const answer = await get("effects", { id, all: all ? 1 : "", cursor });
    if (!cursor) put(list);
    list.append(...answer.effects.map((effect) => one(effect, draw)));
    put(foot, answer.next && button("Show more", () => load(answer.next), { "data-test": "more" }));
    if (!list.children.length)
      put(
        list,
        h(
          "li",
          {},
          empty(all ? "This session made no recorded calls." : "No calls since the parent."),
        ),
      );
  }
  const draw = async () => {
    const opened = [...list.querySelectorAll("details")].map((found) => found.open);
    await load();
    list.querySelectorAll("details").forEach((found, at) => {
      if (opened[at]) found.open = true;
    });
  };
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

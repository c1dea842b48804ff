// The plan, and how far it has come.
import { bar, chip, empty, h, long, patch, put, val } from "./dom.js";
import { get } from "./api.js";
import { ago, instant, kindOf, moment, plain, pretty } from "./format.js";

const KNOWN = [
  "id",
  "name",
  "status",
  "started_at",
  "ended_at",
  "attempts",
  "reason",
  "needs",
  "parent",
];
const list = (value) => (value && value.$type ? value.value : value) || [];

function line(task) {
  const rest = Object.entries(task).filter(
    ([name, value]) => !KNOWN.includes(name) && value !== null,
  );
  const when = instant(task.ended_at) || instant(task.started_at) || null;
  const depth = task.parent ? Math.min(String(task.id).split("/").length - 1, 6) : 0;
  return h(
    "li",
    {
      class: "task",
      "data-test": "task",
      "data-status": task.status,
      "data-key": task.id,
      vars: { "--depth": depth },
    },
    h(
      "div",
      { class: "fact-line" },
      chip(task.status, kindOf(task.status)),
      h("strong", {}, val(task.name || task.id, 200)),
      h(
        "span",
        { class: "quiet" },
        task.attempts > 1 ? `${task.attempts} attempts · ` : "",
        when && h("time", { datetime: when, title: moment(when) }, ago(when)),
      ),
    ),
    list(task.needs).length
      ? h("p", { class: "quiet" }, "needs ", val(list(task.needs).join(", "), 200))
      : null,
    task.reason
      ? h("p", { class: task.status === "failed" ? "bad" : "" }, val(plain(task.reason), 1000))
      : null,
    rest.length
      ? h(
          "details",
          {},
          h("summary", {}, "More"),
          long(pretty(Object.fromEntries(rest)), { class: "code" }),
        )
      : null,
  );
}

export async function show(box, { id }) {
  async function draw() {
    const answer = await get("tasks", { id });
    if (!answer.tasks.length) {
      put(box, empty("This checkpoint has no plan."));
      return;
    }
    patch(box, bar(answer.progress), h("ol", { class: "tasks" }, answer.tasks.map(line)));
  }
  await draw();
  return { refresh: draw };
}

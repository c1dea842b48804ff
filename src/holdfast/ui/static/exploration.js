// How strategies came out that were tried from one checkpoint.
import { chip, h, link, patch, val } from "./dom.js";
import { get } from "./api.js";
import { kindOf, number } from "./format.js";
import { to } from "./main.js";

const COLUMNS = [
  ["Score", "score"],
  ["Cost", "cost"],
  ["Seconds", "seconds"],
  ["Calls", "calls"],
  ["State changes", "state_changes"],
  ["File changes", "file_changes"],
];
const best = (one, other) =>
  (other.score ?? Number.NEGATIVE_INFINITY) - (one.score ?? Number.NEGATIVE_INFINITY) || 0;
const rounded = (value) =>
  value === null ? "–" : number(Math.abs(value) < 100 ? Number(value.toPrecision(3)) : value);

export async function open(root, given) {
  const asked = { agent: given.agent, session: given.exploration };

  async function draw() {
    const found = await get("exploration", asked);
    const row = (one) =>
      h(
        "tr",
        { "data-test": "strategy" },
        h(
          "th",
          { scope: "row" },
          val(one.strategy, 100),
          one.strategy === found.winner ? [" ", chip("winner", "good")] : null,
          h(
            "div",
            {},
            link(
              to("session", { agent: one.agent_id, session: one.session_id }),
              { class: "quiet" },
              val(one.session_id, 80),
            ),
          ),
        ),
        h(
          "td",
          {},
          chip(one.status, kindOf(one.status)),
          one.error && h("div", { class: "bad" }, val(one.error, 300)),
        ),
        COLUMNS.map(([, name]) =>
          h("td", { class: "number", title: one[name] }, rounded(one[name])),
        ),
        h(
          "td",
          {},
          one.head && found.checkpoint_id
            ? link(to("compare", { a: found.checkpoint_id, b: one.head }), {}, "compare")
            : "",
        ),
      );
    patch(
      root,
      h("h1", {}, "Exploration of ", val(asked.session, 120)),
      h(
        "p",
        { class: "quiet" },
        "Each strategy began with the same state and the same files. Its session says how it went; ",
        "adopt it there.",
      ),
      h(
        "div",
        { class: "wide", tabindex: 0, role: "region", "aria-label": "Strategies" },
        h(
          "table",
          { "data-test": "exploration-table" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              ["Strategy", "Status"].map((name) => h("th", { scope: "col" }, name)),
              COLUMNS.map(([name]) => h("th", { scope: "col", class: "number" }, name)),
              h("th", { scope: "col" }, h("span", { class: "hidden" }, "Compare")),
            ),
          ),
          h("tbody", {}, found.outcomes.toSorted(best).map(row)),
        ),
      ),
    );
  }

  await draw();
  return {
    refresh: draw,
    moved: (now) => now.exploration === given.exploration && now.agent === given.agent,
  };
}

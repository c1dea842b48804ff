// What the store holds, and what pruning would free.
import { button, empty, failure, h, link, loading, patch, put, s, val } from "./dom.js";
import { get, settings } from "./api.js";
import { bytes, moment, number, plain, plural, visible } from "./format.js";
import { notice, to } from "./main.js";
import { ask } from "./actions.js";

const WIDEST = 24;
function chart(points) {
  if (!points.length) return empty("Nothing has been saved yet.");
  const most = Math.max(1, ...points.map((one) => one.logical_bytes));
  const wide = Math.min(WIDEST, 600 / points.length);
  const bars = points.map((one, at) => {
    const high = Math.max(1, (120 * one.logical_bytes) / most);
    return s(
      "rect",
      { x: at * wide + 1, y: 125 - high, width: Math.max(1, wide - 2), height: high },
      s(
        "title",
        {},
        `${moment(one.at)}: ${plural(one.checkpoints, "checkpoint")}, ${bytes(one.logical_bytes)}`,
      ),
    );
  });
  const label = (one) => `${moment(one.at)}: ${bytes(one.logical_bytes)}`;
  return h(
    "figure",
    { class: "growth" },
    s(
      "svg",
      {
        class: "chart",
        viewBox: "0 0 600 126",
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": `Growth in ${plural(points.length, "step")}, at most ${bytes(most)}`,
        "data-test": "growth",
      },
      bars,
    ),
    h(
      "figcaption",
      { class: "quiet" },
      h("span", {}, label(points[0])),
      points.length > 1 ? h("span", {}, label(points.at(-1))) : null,
    ),
  );
}

function table(names, rows) {
  const cell = (tag, attributes, [kind, words]) =>
    h(tag, { ...attributes, class: kind === "number" ? "number" : null }, words);
  return h(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": names[0][1] },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          names.map((name) => cell("th", { scope: "col" }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h(
            "tr",
            {},
            row.map((each, at) => cell("td", {}, [names[at][0], each])),
          ),
        ),
      ),
    ),
  );
}

const named = (one) =>
  link(
    to("session", { agent: one.agent_id, session: one.session_id }),
    {},
    val(one.session_id, 100),
  );

const LARGEST = [
  ["text", "Session"],
  ["text", "Agent"],
  ["number", "Checkpoints"],
  ["number", "Logical"],
];
const SHARED = [
  ["text", "Newest state of"],
  ["number", "Stored"],
  ["number", "Alone"],
  ["text", "Shared with"],
];

export async function open(root) {
  const numbers = h("div", {});
  async function draw() {
    const all = await get("storage");
    const fact = (name, value) =>
      h("div", { class: "figure" }, h("dd", {}, value), h("dt", {}, name));
    patch(
      numbers,
      h("p", { class: "quiet", "data-test": "store" }, val(all.store, 300)),
      h(
        "dl",
        { class: "figures" },
        fact("checkpoints", number(all.checkpoints)),
        fact("sessions", number(all.sessions)),
        fact("chunks", number(all.chunks)),
        fact("logical", bytes(all.logical_bytes)),
        fact("stored", bytes(all.stored_bytes)),
        fact(
          "sharing",
          plain(typeof all.sharing === "number" ? `${all.sharing.toFixed(1)}×` : all.sharing),
        ),
      ),
      h("h2", {}, "Growth"),
      chart(all.growth),
      h("h2", {}, "Largest sessions"),
      all.largest.length
        ? table(
            LARGEST,
            all.largest.map((one) => [
              named(one),
              val(one.agent_id, 80),
              number(one.checkpoints),
              bytes(one.logical_bytes),
            ]),
          )
        : empty("No sessions."),
      all.looked_at < all.checkpoints
        ? h("p", { class: "quiet" }, `By the newest ${number(all.looked_at)} checkpoints.`)
        : null,
    );
  }
  const shared = h("div", { "aria-live": "polite", "data-test": "sharing" });
  async function share() {
    put(shared, loading());
    try {
      const { sessions } = await get("sharing");
      put(
        shared,
        table(
          SHARED,
          sessions.map((one) => [
            named(one),
            bytes(one.stored_bytes),
            bytes(one.alone_bytes),
            one.shared.length
              ? one.shared.slice(0, 4).map((other) => [named(other), ` ${bytes(other.bytes)} `])
              : "none of these",
          ]),
        ),
      );
    } catch (error) {
      put(shared, failure(error));
    }
  }
  await draw();
  const last = h("input", {
    type: "number",
    min: 0,
    value: "20",
    id: "keep-last",
    "data-test": "prune-last",
  });
  const within = h("input", {
    type: "text",
    value: "",
    placeholder: "7d",
    id: "keep-within",
    "data-test": "prune-within",
  });
  const answer = h("div", { "aria-live": "polite", "data-test": "prune-answer" });
  // What was said of other rules does not stand beside these.
  for (const field of [last, within]) field.addEventListener("input", () => put(answer));
  const policy = () => ({
    ...(last.value !== "" ? { last: Number(last.value) } : {}),
    ...(within.value.trim() ? { within: within.value.trim() } : {}),
  });
  const rules = () =>
    [
      last.value !== "" && `the newest ${last.value}`,
      within.value.trim() && `what is younger than ${visible(within.value.trim(), 60)}`,
    ]
      .filter(Boolean)
      .join(", and ");
  const would = (found) =>
    `${plural(found.removed_total, "checkpoint")} would be removed, ${number(found.kept)} kept. ` +
    `Each counted whole they are ${bytes(found.freed_logical_bytes)}; what others share stays.`;
  async function look() {
    put(answer, loading());
    try {
      const found = await get("prune-preview", policy());
      put(
        answer,
        h("p", {}, would(found)),
        found.removed_total && !settings.read_only
          ? button(
              "Prune…",
              () =>
                ask({
                  title: "Prune",
                  words: [
                    "Kept of each session: ",
                    h("strong", {}, rules()),
                    ". All else is removed and cannot be brought back.",
                  ],
                  verb: "prune",
                  danger: true,
                  body: policy,
                  describe: (one) => h("p", {}, would(one)),
                  done: async (one) => {
                    notice(`${plural(one.removed_total, "checkpoint")} removed.`);
                    put(answer);
                    await draw();
                  },
                }),
              { class: "button danger", "data-test": "prune" },
            )
          : null,
      );
    } catch (error) {
      put(answer, failure(error));
    }
  }
  put(
    root,
    h("h1", {}, "Storage"),
    numbers,
    h("h2", {}, "What shares what"),
    h(
      "div",
      { class: "buttons" },
      button("Look at the largest sessions", share, { "data-test": "look-at-sharing" }),
    ),
    shared,
    h("h2", {}, "Prune"),
    h(
      "form",
      {
        class: "filters",
        submit: (event) => {
          event.preventDefault();
          look();
        },
      },
      h("label", { for: "keep-last" }, "Keep the newest of each session"),
      last,
      h("label", { for: "keep-within" }, "and what is younger than"),
      within,
      h("button", { class: "button", "data-test": "prune-preview" }, "Preview"),
    ),
    answer,
  );
  return { refresh: draw, moved: () => true };
}

// A conversation as people read it.
import { button, chip, empty, failure, h, long, patch, put, safely, val } from "./dom.js";
import { get, text } from "./api.js";
import { bytes, number, plain, plural, pretty } from "./format.js";
import { kept } from "./kept.js";
import { markdown } from "./markdown.js";

const NAMES = new Map([
  ["user", "User"],
  ["human", "User"],
  ["assistant", "Assistant"],
  ["ai", "Assistant"],
  ["system", "System"],
  ["tool", "Tool"],
  ["developer", "Developer"],
]);
const PAGE = 100;
// How much of what was said before stays in sight above what is new.
const ABOVE = 56;
const asWritten = kept("as-written");

const whole = (part) => (part.src ? () => text(`api/v1/${part.src}`) : null);
const said = (part, value, kind) => long(pretty(value), { class: kind }, whole(part), part.cut);
const words = (part) =>
  long(
    String(part.content ?? ""),
    { class: "prose", dir: "auto" },
    whole(part),
    part.cut,
    asWritten.get() ? null : markdown,
  );

function answer(part) {
  return h(
    "div",
    { class: part.is_error ? "answer bad" : "answer" },
    h("span", { class: "label" }, part.is_error ? "Error" : "Result"),
    said(part, part.response ?? "", "code"),
    (part.parts || []).map(media),
  );
}

function media(part) {
  const where = part.src && `api/v1/${part.src}`;
  const type = part.mime_type || "";
  if (part.type === "uri")
    return h("p", { class: "attachment" }, `${part.modality || "link"}: `, val(part.uri, 500));
  if (part.type === "file")
    return h("p", { class: "attachment" }, "file: ", val(part.file_id, 300));
  if (/^image\/(png|jpeg|gif|webp|avif)$/.test(type))
    return h("img", {
      src: where,
      alt: `Image in the message, ${type}`,
      class: "picture",
      loading: "lazy",
    });
  return h(
    "p",
    { class: "attachment" },
    `${part.modality || "data"}, ${type || "unknown type"}, ${bytes(part.size)} `,
    where && h("a", { href: where, download: "" }, "download"),
  );
}

function call(part, answers, pending) {
  const found = answers.get(part.id);
  const failed = found && found.is_error;
  const brief = plain(part.arguments ?? {}, 1);
  return h(
    "details",
    { class: "tool-call", "data-test": "tool-call" },
    h(
      "summary",
      {},
      h("span", { class: "tool" }, val(part.name || "tool", 80)),
      h("span", { class: "quiet brief" }, val(brief, 120)),
      failed ? chip("error", "bad") : pending.has(part.id) ? chip("no answer", "warn") : null,
    ),
    h("div", { class: "label" }, "Arguments"),
    said(part, part.arguments ?? {}, "code"),
    found ? answer(found) : null,
  );
}

function draw(part, answers, pending, used) {
  switch (part.type) {
    case "text":
      return words(part);
    case "reasoning":
      return h("details", { class: "reasoning" }, h("summary", {}, "Reasoning"), words(part));
    case "tool_call":
      return call(part, answers, pending);
    case "tool_call_response":
      return used.has(part.id) ? null : answer(part);
    case "blob":
    case "uri":
    case "file":
      return media(part);
    default:
      return h(
        "details",
        {},
        h("summary", {}, val(part.type || "part", 60)),
        long(pretty(part), { class: "code" }),
      );
  }
}

const roleOf = (one) => String(one.role || "");

export async function show(box, { id, scroller }) {
  const list = h("ol", { class: "messages" });
  const head = h("div", { class: "buttons" });
  const trouble = h("div", {});
  let all = [];
  let next = null;
  let total = 0;
  let pending = new Set();

  function message(one, answers, calls) {
    const parts = one.parts
      .map((part) => safely(() => draw(part, answers, pending, calls)))
      .filter(Boolean);
    if (!parts.length) return null;
    const name = NAMES.get(roleOf(one));
    const made = h(
      "li",
      {
        class: `message ${name ? name.toLowerCase() : "other"}${one.new ? " new" : ""}`,
        "data-test": "message",
        "data-index": one.index,
        "data-key": one.index,
      },
      h(
        "div",
        { class: "role" },
        name || val(roleOf(one) || "?", 40),
        one.new ? chip("new", "live") : null,
      ),
      h("div", { class: "said" }, parts),
    );
    const answered = one.parts.filter((part) => answers.has(part.id)).length;
    made.same = `${one.index} ${answered} ${asWritten.get()}`;
    return made;
  }

  function paint() {
    const answers = new Map();
    const calls = new Set();
    for (const part of all.flatMap((one) => one.parts)) {
      if (part.type === "tool_call_response" && part.id) answers.set(part.id, part);
      if (part.type === "tool_call" && part.id) calls.add(part.id);
    }
    patch(
      list,
      all.map((one) => message(one, answers, calls)),
    );
    patch(
      head,
      next &&
        button(`Show earlier (${number(total - all.length)} more)`, earlier, {
          "data-test": "more",
        }),
      first() &&
        all.length > 6 &&
        button("Jump to what is new", place, { class: "button small", "data-test": "jump-new" }),
      all.length > 0 &&
        button("As written", toggle, {
          class: "button small plain",
          title: "Show messages letter by letter, or laid out",
          "aria-pressed": String(Boolean(asWritten.get())),
          "data-test": "as-written",
        }),
    );
  }

  // The end of a conversation comes first: what was said before it is asked for.
  async function load(cursor) {
    const read = await get("messages", { id, limit: PAGE, cursor });
    pending = new Set(read.pending);
    all = read.messages.concat(all);
    next = read.next;
    total = read.total;
    return read;
  }

  // What is read stays where it is while more comes above it.
  async function earlier() {
    try {
      await load(next);
      const before = scroller().scrollHeight;
      const { scrollTop } = scroller();
      paint();
      scroller().scrollTop = scrollTop + scroller().scrollHeight - before;
      put(trouble);
    } catch (error) {
      put(trouble, failure(error));
    }
  }

  function toggle() {
    asWritten.set(asWritten.get() ? "" : "1");
    paint();
  }

  const first = () => all.find((one) => one.new);
  // To what is new, or to the end: nobody has to look for what a step added.
  function place() {
    const found = list.querySelector(".new");
    const view = scroller();
    const top = found
      ? found.getBoundingClientRect().top - view.getBoundingClientRect().top + view.scrollTop
      : view.scrollHeight;
    view.scrollTop = found && found === list.firstElementChild && !next ? 0 : top - ABOVE;
  }

  const read = await load();
  paint();
  put(
    box,
    read.lost.length
      ? h("p", { class: "note" }, "Not shown as it was: ", val(plain(read.lost), 400))
      : null,
    read.removed
      ? h("p", { class: "note" }, `Without ${plural(read.removed, "message")} of the parent.`)
      : null,
    head,
    trouble,
    all.length ? list : empty("No messages were kept in this checkpoint."),
  );
  return { place };
}

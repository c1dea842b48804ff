// The changed lines of a file, with the words that did: one below the other, or side by side.
import { empty, h } from "./dom.js";
import { visible } from "./format.js";

const WORDS = 400;
const WIDE = 1500;
const KIND = { "+": "plus", "-": "minus", " ": "" };

const words = (line) =>
  line.words
    .slice(0, WORDS)
    .map(([text, changed]) =>
      changed ? h("b", {}, visible(text, WIDE, false)) : visible(text, WIDE, false),
    );

const one = (line, at) =>
  h(
    "div",
    { class: `line ${line ? KIND[line.op] : "none"}` },
    h("span", { class: "at" }, at),
    h("code", {}, line ? [line.op, " ", words(line)] : ""),
  );

// Lines that went beside those that came; what stayed stands on both sides.
function pairs(lines) {
  const rows = [];
  let minus = [];
  let plus = [];
  const flush = () => {
    for (let at = 0; at < Math.max(minus.length, plus.length); at += 1)
      rows.push([minus[at], plus[at]]);
    minus = [];
    plus = [];
  };
  for (const line of lines) {
    if (line.op === "-") minus.push(line);
    else if (line.op === "+") plus.push(line);
    else {
      flush();
      rows.push([line, line]);
    }
  }
  flush();
  return rows;
}

export function hunks(file, split) {
  if (file.binary) return empty("Binary files differ.");
  if (!file.hunks.length) return empty("Its content is the same.");
  return h(
    "div",
    { class: "lines" },
    file.hunks.map((hunk) => [
      h(
        "div",
        { class: "line hunk" },
        h("code", {}, `@@ −${hunk.old_start} +${hunk.new_start} @@`),
      ),
      split
        ? pairs(hunk.lines).map(([a, b]) =>
            h("div", { class: "side" }, one(a, a?.old), one(b, b?.new)),
          )
        : hunk.lines.map((line) => one(line, line.new ?? line.old)),
    ]),
    file.cut ? h("p", { class: "note" }, "Cut: the rest is not shown.") : null,
  );
}

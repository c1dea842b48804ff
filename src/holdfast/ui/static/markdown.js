// Messages as models write them: the common part of Markdown, drawn as elements. Every letter is text;
// nothing in a message becomes markup, an address, or anything that is loaded.
import { h } from "./dom.js";
import { visible } from "./format.js";

const DEEPEST = 5;
const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([\w+#.-]{0,30})[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^([ \t]*)([-*+]|\d{1,9}[.)])[ \t]+(.*)$/;
const NEW_LIST = /^[ \t]*(?:[-*+]|1[.)])[ \t]+\S/;
const COLUMNS = /^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const ESCAPED = /[!-/:-@[-`{-~]/;
const WORD = /[\p{L}\p{N}_]/u;

const words = (text) => visible(text, Infinity, false, true);

export const markdown = (text) => blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0);

function blocks(lines, depth) {
  const made = [];
  let at = 0;
  while (at < lines.length) {
    const [node, after] = block(lines, at, depth);
    if (node) made.push(node);
    at = after;
  }
  return made;
}

function block(lines, at, depth) {
  const line = lines[at];
  if (!line.trim()) return [null, at + 1];
  const fence = FENCE.exec(line);
  if (fence) return code(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) {
    const said = heading[2].replace(/[ \t]#+[ \t]*$/, "");
    return [h("p", { class: `heading level-${heading[1].length}` }, inline(said, 0)), at + 1];
  }
  if (RULE.test(line)) return [h("hr"), at + 1];
  if (depth < DEEPEST && QUOTE.test(line)) {
    const [inner, after] = run(lines, at, (each) => QUOTE.test(each));
    const said = inner.map((each) => each.replace(QUOTE, ""));
    return [h("blockquote", {}, blocks(said, depth + 1)), after];
  }
  if (depth < DEEPEST && ITEM.test(line)) return list(lines, at, depth);
  if (line.includes("|") && COLUMNS.test(lines[at + 1] ?? "") && lines[at + 1].includes("-"))
    return table(lines, at);
  const [rest, after] = run(lines, at + 1, (each) => each.trim() && !begins(each));
  return [h("p", {}, inline([line, ...rest].join("\n"), 0)), after];
}

// Whether a line ends the paragraph before it. A number alone does not: it may be a year.
const begins = (line) => [FENCE, HEADING, RULE, QUOTE, NEW_LIST].some((one) => one.test(line));

// The lines from one on for which something holds, and where they end.
function run(lines, at, holds) {
  let after = at;
  while (after < lines.length && holds(lines[after])) after += 1;
  return [lines.slice(at, after), after];
}

function code(lines, at, [, mark, language]) {
  const closes = (line) => {
    const end = line.trim();
    return end.length >= mark.length && end === mark[0].repeat(end.length);
  };
  const [inner, after] = run(lines, at + 1, (line) => !closes(line));
  const label = language ? h("span", { class: "label" }, language) : null;
  return [
    h("div", { class: "fenced" }, label, h("pre", { class: "code" }, words(inner.join("\n")))),
    after + 1,
  ];
}

const indent = (line) => line.length - line.trimStart().length;

function list(lines, begin, depth) {
  const [, , first] = ITEM.exec(lines[begin]);
  const isOrdered = /\d/.test(first);
  const base = indent(lines[begin]);
  const items = [];
  let at = begin;
  while (at < lines.length) {
    const found = ITEM.exec(lines[at]);
    if (found && indent(lines[at]) <= base + 1) {
      if (/\d/.test(found[2]) !== isOrdered || indent(lines[at]) < base) break;
      items.push([found[3]]);
    } else if (!lines[at].trim()) {
      const next = lines[at + 1] ?? "";
      if (!next.trim() || (indent(next) <= base && !ITEM.test(next))) break;
      items.at(-1).push("");
    } else if (indent(lines[at]) > base || (lines[at - 1].trim() && !begins(lines[at])))
      items.at(-1).push(lines[at].slice(Math.min(indent(lines[at]), base + 2)));
    else break;
    at += 1;
  }
  const start = isOrdered ? Number.parseInt(first, 10) : 1;
  const made = items.map((inner) => h("li", {}, item(inner, depth + 1)));
  const tag = isOrdered ? "ol" : "ul";
  return [h(tag, { class: "listed", start: start === 1 ? null : start }, made), at];
}

// A short item is a line; one with more in it has blocks of its own.
function item(lines, depth) {
  const task = /^\[([ xX])\][ \t]+/.exec(lines[0]);
  const box = task ? (task[1] === " " ? "☐ " : "☑ ") : null;
  const said = task ? [lines[0].slice(task[0].length), ...lines.slice(1)] : lines;
  const [first, ...rest] = blocks(said, depth);
  const lead = first?.nodeName === "P" && !first.className ? [...first.childNodes] : first;
  return [box, lead, rest];
}

function cells(line) {
  const text = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return text.split(/(?<!\\)\|/).map((each) => each.trim().replaceAll("\\|", "|"));
}

function table(lines, at) {
  const names = cells(lines[at]);
  const [rows, after] = run(lines, at + 2, (line) => line.includes("|"));
  const row = (tag, each) =>
    h(
      "tr",
      {},
      names.map((_, column) =>
        h(tag, tag === "th" ? { scope: "col" } : {}, inline(each[column] ?? "", 0)),
      ),
    );
  return [
    h(
      "div",
      { class: "wide", tabindex: 0, role: "region", "aria-label": "Table" },
      h(
        "table",
        {},
        h("thead", {}, row("th", names)),
        h(
          "tbody",
          {},
          rows.map((line) => row("td", cells(line))),
        ),
      ),
    ),
    after,
  ];
}

// What stands between a mark and the next of its kind; each kind that is not closed is looked for once.
function inline(text, depth) {
  const made = [];
  const open = new Set();
  let plain = "";
  const push = (node) => {
    if (plain) made.push(words(plain));
    plain = "";
    made.push(node);
  };
  const close = (mark, from) => {
    if (open.has(mark)) return -1;
    let end = text.indexOf(mark, from);
    while (end >= 0 && !ends(text, end, mark, from)) end = text.indexOf(mark, end + 1);
    if (end < 0) open.add(mark);
    return end;
  };
  let at = 0;
  while (at < text.length) {
    const letter = text[at];
    if (letter === "\\" && ESCAPED.test(text[at + 1] ?? "")) {
      plain += text[at + 1];
      at += 2;
      continue;
    }
    const mark = depth < DEEPEST ? markAt(text, at) : null;
    const end = mark ? close(mark, at + mark.length) : -1;
    if (end > at) {
      const inner = text.slice(at + mark.length, end);
      push(marked(mark, inner, depth));
      at = end + mark.length;
      continue;
    }
    const link =
      letter === "[" || (letter === "!" && text[at + 1] === "[") ? linkAt(text, at) : null;
    if (link) {
      push(link.node(depth));
      at = link.after;
      continue;
    }
    const step = mark ? mark.length : 1;
    plain += text.slice(at, at + step);
    at += step;
  }
  if (plain) made.push(words(plain));
  return made;
}

function markAt(text, at) {
  const letter = text[at];
  if (letter === "`") return /^`+/.exec(text.slice(at, at + 20))[0];
  if (!"*_~".includes(letter)) return null;
  const isDouble = text[at + 1] === letter;
  const mark = isDouble ? letter + letter : letter;
  if (mark === "~") return null;
  const next = text[at + mark.length];
  if (!next || /\s/.test(next)) return null;
  if (letter === "_" && WORD.test(text[at - 1] ?? "")) return null;
  return mark;
}

function ends(text, end, mark, from) {
  if (end === from) return false;
  const [before, after] = [text[end - 1], text[end + mark.length] ?? ""];
  if (mark[0] === "`") return before !== "`" && after !== "`";
  if (/\s/.test(before)) return false;
  if (mark.length === 1 && (before === mark || after === mark)) return false;
  return mark[0] !== "_" || !WORD.test(after);
}

const TAGS = { "**": "strong", __: "strong", "*": "em", _: "em", "~~": "s" };
function marked(mark, inner, depth) {
  if (mark[0] === "`") return h("code", {}, words(inner.replace(/^ (.*) $/s, "$1")));
  return h(TAGS[mark], {}, inline(inner, depth + 1));
}

// An address is told and leads nowhere: who follows it does so knowingly.
function linkAt(text, at) {
  const begin = at + (text[at] === "!" ? 2 : 1);
  const middle = text.slice(begin, begin + 500).indexOf("](");
  if (middle < 0) return null;
  const where = begin + middle + 2;
  const length = text.slice(where, where + 2000).search(/[)\n]/);
  if (length < 0 || text[where + length] !== ")") return null;
  const said = text.slice(begin, begin + middle);
  const address = text.slice(where, where + length);
  if (said.includes("[") || said.includes("\n")) return null;
  return {
    after: where + length + 1,
    node: (depth) =>
      h(
        "span",
        {},
        said === address ? null : [inline(said, depth + 1), " "],
        h("span", { class: "quiet" }, words(said === address ? address : `(${address})`)),
      ),
  };
}

// The files of a checkpoint: a tree, one file beside it, and what changed.
import { button, chip, empty, failure, h, link, loading, put, val } from "./dom.js";
import { address, get } from "./api.js";
import { bytes, kindOf, number, visible } from "./format.js";

const LINES = 3000;
const WIDE = 1500;
// Directories that are opened to come to what changed.
const DEEPEST = 12;

export function lines(text, mark = null) {
  const all = text.split("\n");
  const made = h("div", { class: "lines" });
  let upTo = 0;
  const more = button("", () => next(), { class: "button small", "data-test": "show-all" });
  function next() {
    const some = document.createDocumentFragment();
    for (const line of all.slice(upTo, upTo + LINES)) {
      upTo += 1;
      some.append(
        h(
          "div",
          { class: `line ${mark ? mark(line) : ""}` },
          h("span", { class: "at", "aria-hidden": "true" }, mark ? "" : upTo),
          h(
            "code",
            {},
            visible(line, WIDE, false),
            line.length > WIDE
              ? h("i", { class: "quiet" }, ` … ${number(line.length)} characters`)
              : null,
          ),
        ),
      );
    }
    made.insertBefore(some, more);
    if (upTo >= all.length) more.remove();
    else more.textContent = `Show more (${number(upTo)} of ${number(all.length)} lines)`;
  }
  made.append(more);
  next();
  return made;
}

const diffed = (line) =>
  line.startsWith("+++") || line.startsWith("---")
    ? "quiet"
    : line[0] === "+"
      ? "plus"
      : line[0] === "-"
        ? "minus"
        : line.startsWith("@@")
          ? "hunk"
          : "";

export async function show(box, { id, detail, path: wanted, keep }) {
  const viewer = h("div", {
    class: "file-view",
    "data-test": "file-view",
    tabindex: "0",
    role: "region",
    "aria-label": "File",
  });
  const tree = h("div", {
    class: "file-tree",
    role: "region",
    "aria-label": "Files",
    tabindex: "0",
  });
  let current = null;

  // Files are asked for by their `ref`, which leads back to names that are no text, too.
  async function view(ref, row, isChosen) {
    tree.querySelector("[aria-current]")?.removeAttribute("aria-current");
    row?.setAttribute("aria-current", "true");
    current = ref;
    if (isChosen) keep(ref);
    put(viewer, loading());
    try {
      const file = await get("file", { id, ref });
      if (current !== ref) return;
      const body = h("div", {});
      const raw = address("raw", { id, ref });
      const content = () =>
        put(
          body,
          file.kind === "image"
            ? h("img", { src: raw, alt: `The image ${visible(file.path, 200)}`, class: "picture" })
            : file.kind === "text"
              ? [
                  lines(file.text || ""),
                  file.cut
                    ? h(
                        "p",
                        { class: "note" },
                        `Cut: the file has ${bytes(file.size)}. Download it to read it whole.`,
                      )
                    : null,
                ]
              : file.kind === "link"
                ? h("p", {}, "A link to ", val(file.text, 500))
                : empty(`Binary, ${bytes(file.size)}.`),
        );
      const changes = () => put(body, lines(file.diff, diffed));
      const tabs = file.diff
        ? [
            button("Content", () => press(0), { class: "button small", "aria-pressed": "true" }),
            button("What changed", () => press(1), {
              class: "button small",
              "aria-pressed": "false",
              "data-test": "file-changes",
            }),
          ]
        : [];
      const press = (at) => {
        tabs.forEach((one, index) => one.setAttribute("aria-pressed", String(index === at)));
        (at ? changes : content)();
      };
      put(
        viewer,
        h(
          "div",
          { class: "file-head" },
          h("strong", {}, val(file.path, 400)),
          h(
            "span",
            { class: "quiet" },
            bytes(file.size),
            file.encoding && file.encoding !== "utf-8" ? ` · ${file.encoding}` : "",
          ),
          tabs,
          link(
            address("raw", { id, ref, download: 1 }),
            { download: "", class: "button small" },
            "Download",
          ),
        ),
        body,
      );
      if (file.diff) press(1);
      else content();
    } catch (error) {
      if (current === ref) put(viewer, failure(error));
    }
  }

  async function fill(inner, ref, cursor, into) {
    const answer = await get("files", { id, ref, cursor, limit: 300 });
    const list = into || h("ul", { class: "branch-list" });
    const made = answer.entries.map((entry) => {
      const inside = h("div", { class: "inner", hidden: true });
      let read = false;
      const isDir = entry.kind === "directory";
      const open = async (force) => {
        if (!isDir) {
          await view(entry.ref, row, !force);
          return;
        }
        const will = force || inside.hidden;
        inside.hidden = !will;
        row.setAttribute("aria-expanded", String(will));
        if (will && !read) {
          read = true;
          try {
            await fill(inside, entry.ref);
          } catch (error) {
            put(inside, failure(error));
          }
        }
      };
      const gone = entry.changed === "removed" && !isDir;
      const row = h(
        "button",
        {
          type: "button",
          class: `node ${entry.kind}`,
          disabled: gone,
          "data-test": "file-row",
          "data-path": entry.ref,
          "aria-expanded": isDir ? "false" : null,
          click: () => open(),
        },
        h("span", { class: "key" }, val(entry.name, 200), isDir ? "/" : ""),
        entry.changed && chip(entry.changed, kindOf(entry.changed)),
        h("span", { class: "type" }, isDir ? "" : bytes(entry.size)),
      );
      const one = h("li", {}, row, inside);
      Object.assign(one, { ref: entry.ref, go: open, isDir, isChanged: entry.changed && !gone });
      return one;
    });
    list.append(...made);
    if (!into) put(inner, list);
    if (answer.next) {
      const more = button(
        "Show more",
        async () => {
          more.remove();
          await fill(inner, ref, answer.next, list);
        },
        { class: "button small", "data-test": "more" },
      );
      inner.append(more);
    }
    return { made, answer };
  }

  const nothing = () =>
    put(
      box,
      empty(
        "No files were kept with this checkpoint. client.snapshot(…) or a workspace keeps them.",
      ),
    );
  if (!detail.has.files) {
    nothing();
    return;
  }
  const { made, answer } = await fill(tree, "");
  if (!made.length) {
    nothing();
    return;
  }
  const sum = answer.changed;
  const changed = Object.entries(sum || {}).filter(([, count]) => count);
  put(
    box,
    sum &&
      h(
        "p",
        { class: "quiet" },
        changed.length ? "Since the parent: " : "Nothing changed since the parent.",
        h(
          "span",
          { class: "chips inline" },
          changed.map(([name, count]) => chip(`${number(count)} ${name}`, kindOf(name))),
        ),
      ),
    h("div", { class: "file-split" }, tree, viewer),
  );
  put(viewer, empty("Choose a file."));
  let level = made;
  const inside = (one) => [...one.querySelectorAll(":scope > .inner > ul > li")];
  while (wanted && level) {
    const found = level.find(
      (one) => one.ref === wanted || (one.isDir && wanted.startsWith(`${one.ref}/`)),
    );
    if (!found) break;
    await found.go(true);
    level = found.isDir ? inside(found) : null;
  }
  // What changed is what one looks for first.
  let rest = wanted ? [] : made;
  for (let depth = 0; rest.length && depth < DEEPEST; depth += 1) {
    const first = rest.find((one) => one.isChanged) || (made.length === 1 ? made[0] : null);
    if (!first) break;
    await first.go(true);
    rest = first.isDir ? inside(first) : [];
  }
}

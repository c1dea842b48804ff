// A state as a tree; each branch is read when it is opened.
import { button, empty, failure, h, long, put, val } from "./dom.js";
import { get } from "./api.js";
import { number, pretty } from "./format.js";

export async function show(box, { id, path: wanted, keep }) {
  let part = "state";
  const tree = h("div", { class: "tree", "data-test": "state-tree" });

  function node(child) {
    const inner = h("div", { class: "inner", hidden: true });
    let read = false;
    const opens =
      !child.leaf ||
      (child.size > 60 && /str|bytes|utf8/.test(child.type || "")) ||
      String(child.preview ?? "").endsWith("…");
    const label = [
      h("span", { class: "key" }, val(child.key, 200)),
      h("span", { class: "type" }, val(child.type, 40), child.leaf ? "" : ` ${number(child.size)}`),
      h("span", { class: "preview" }, val(child.preview ?? "", 200)),
    ];
    async function open(force) {
      const will = force || inner.hidden;
      inner.hidden = !will;
      head.setAttribute("aria-expanded", String(will));
      if (will) keep(child.path);
      if (!will || read) return;
      read = true;
      try {
        await fill(inner, child.path);
      } catch (error) {
        put(inner, failure(error));
        read = false;
      }
    }
    const head = opens
      ? h(
          "button",
          {
            type: "button",
            class: "node",
            "aria-expanded": "false",
            "data-test": "state-node",
            "data-path": child.path,
            click: () => open(),
          },
          label,
        )
      : h("div", { class: "node leaf", "data-test": "state-node", "data-path": child.path }, label);
    const made = h("li", {}, head, inner);
    made.go = open;
    return made;
  }

  async function fill(inner, path, cursor, into) {
    const answer = await get("state", { id, part, path, cursor, limit: 200 });
    if (!answer.children || !answer.children.length) {
      put(
        inner,
        "value" in answer && answer.value !== undefined
          ? long(pretty(answer.value), { class: "code" })
          : long(String(answer.preview ?? ""), { class: "code" }),
      );
      return null;
    }
    const list = into || h("ul", { class: "branch-list" });
    const made = answer.children.map((child) => {
      const one = node(child);
      one.path = child.path;
      return one;
    });
    list.append(...made);
    if (!into) put(inner, list);
    if (answer.next) {
      const more = button(
        `Show more (${number(list.children.length)} of ${number(answer.size)})`,
        async () => {
          more.remove();
          await fill(inner, path, answer.next, list);
        },
        { class: "button small", "data-test": "more" },
      );
      inner.append(more);
    }
    return made;
  }

  const under = (path, above) =>
    path === above || (path.startsWith(above) && /[.[]/.test(path[above.length]));
  async function root(target) {
    put(tree);
    try {
      let made = await fill(tree, "$");
      if (!made && !tree.textContent) put(tree, empty("Nothing is kept here."));
      while (made && target) {
        const found = made.find((one) => under(target, one.path));
        if (!found) break;
        await found.go(true);
        made =
          found.path === target ? null : [...found.querySelectorAll(":scope > .inner > ul > li")];
      }
    } catch (error) {
      put(tree, failure(error));
    }
  }

  const choose = (name) =>
    button(
      name === "state" ? "State" : "Context",
      () => {
        part = name;
        for (const one of both)
          one.setAttribute("aria-pressed", String(one === (name === "state" ? both[0] : both[1])));
        root();
      },
      { class: "button small", "aria-pressed": String(name === part), "data-test": `part-${name}` },
    );
  const both = [choose("state"), choose("context")];
  put(box, h("div", { class: "buttons" }, both), tree);
  await root(wanted);
}

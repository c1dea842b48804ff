// What waits for a person, in all sessions.
import { empty, failure, h, patch, put } from "./dom.js";
import { get } from "./api.js";
import { waiting } from "./waiting.js";

export async function open(root) {
  const trouble = h("div", {});
  const nothing = h("div", {});
  const cards = waiting(() => true, draw);

  async function draw() {
    const all = await get("inbox");
    patch(
      trouble,
      all.damaged.map((words) => failure({ title: "Damaged", message: words })),
    );
    const count = cards.show(all);
    patch(nothing, !count && empty("Nothing waits for you."));
  }

  await draw();
  put(root, h("h1", {}, "Inbox"), trouble, cards.element, nothing);
  return { refresh: draw, moved: () => true, close: cards.close };
}

// What the keys do.
import { button, h } from "./dom.js";
import { settings } from "./api.js";

const KEYS = [
  ["/", "search"],
  ["j  k", "next and previous row: older, newer"],
  ["h  l", "back to the sessions, into a session"],
  ["Enter", "open"],
  ["Space", "play the checkpoints as a film, or stop"],
  ["1 … 6", "tabs of a checkpoint"],
  ["r", "roll back to this checkpoint"],
  ["f", "fork here"],
  ["u", "undo the last rollback"],
  ["c", "compare with the parent, or with the marked one"],
  ["m", "mark for compare"],
  ["g s", "sessions"],
  ["g i", "inbox"],
  ["g c", "compare"],
  ["g d", "storage"],
  ["t", "light or dark"],
  ["?", "this help"],
  ["Esc", "close, or leave a field"],
];

export function help() {
  const close = () => {
    box.close();
    box.remove();
  };
  const box = h(
    "dialog",
    {
      class: "dialog",
      "aria-labelledby": "help-title",
      "data-test": "dialog",
      close: () => box.remove(),
    },
    h("h2", { id: "help-title" }, "Keys"),
    h(
      "dl",
      { class: "keys" },
      KEYS.map(([key, does]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, does)]),
    ),
    h(
      "p",
      { class: "quiet" },
      `Holdfast ${settings.version}. Everything here goes through the same verbs as the command line; programs read api/v1/openapi.json.`,
    ),
    h("div", { class: "buttons" }, button("Close", close, { "data-test": "dialog-cancel" })),
  );
  document.body.append(box);
  box.showModal();
}

// What else is known of a checkpoint.
import { copy, h, link, long, patch, val } from "./dom.js";
import { bytes, moment, plain, pretty } from "./format.js";
import { to } from "./main.js";

// How an offer stands, and where who took it works on it.
function became(offer) {
  const where = offer.session_id && [
    " in ",
    link(
      to("session", { agent: offer.to_agent, session: offer.session_id }),
      {},
      val(offer.session_id, 80),
    ),
  ];
  const why = offer.reason && [": ", val(offer.reason, 500)];
  if (offer.outcome) return [offer.outcome, why, where];
  if (offer.open) return offer.attempts ? "open again" : "open";
  return ["taken by ", val(offer.worker || "a worker", 120), where];
}

export async function show(box, { detail, who }) {
  const draw = (now) => {
    const it = now.checkpoint;
    const id = (value, label, to_) =>
      value &&
      h(
        "span",
        { class: "id" },
        to_ ? link(to_, {}, h("code", {}, val(value, 100))) : h("code", {}, val(value, 100)),
        copy(value, label),
      );
    const rows = [
      ["Id", id(it.checkpoint_id, "the id")],
      [
        "Parent",
        now.parent
          ? id(now.parent, "the id of the parent", to("session", { ...who, at: now.parent }))
          : "none",
      ],
      ["Agent", val(it.agent_id)],
      ["Session", val(it.session_id)],
      ["Framework", val(it.framework)],
      ["Step", `${it.step_index}`],
      ["Made", moment(it.created_at)],
      [
        "Size",
        now.sizes
          ? `${bytes(now.sizes.logical)} in all, ${bytes(now.sizes.new)} new`
          : bytes(it.size),
      ],
      ["Expires", it.ttl_seconds ? `after ${it.ttl_seconds} s` : "never"],
      it.handoff_target && ["Handed to", val(it.handoff_target)],
      now.offer && ["What became of it", became(now.offer)],
      now.workspace && ["Files", `${now.workspace.files} in ${bytes(now.workspace.bytes)}`],
      now.workspace && ["Workspace", val(now.workspace.workspace, 300)],
      now.workspace && ["Tree", id(now.workspace.tree_id, "the id of the tree")],
      ["Content", id(it.content_id, "the id of the content")],
      ["Checksum", id(it.checksum, "the checksum")],
      ["Format", val(it.schema_version)],
      ...(now.interrupts || []).map((one) => [
        "Waits at",
        [val(one.node || one.id || "", 80), " ", val(plain(one.value), 300)],
      ]),
    ].filter(Boolean);
    patch(
      box,
      h(
        "dl",
        { class: "about" },
        rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
      ),
      h("h3", {}, "Metadata"),
      Object.keys(it.metadata || {}).length
        ? long(pretty(it.metadata), { class: "code" })
        : h("p", { class: "quiet" }, "none"),
      h("h3", {}, "Children"),
      (now.children || []).length
        ? h(
            "ul",
            {},
            now.children.map((child) =>
              h(
                "li",
                {},
                link(
                  to("session", {
                    agent: child.agent_id,
                    session: child.session_id,
                    at: child.checkpoint_id,
                  }),
                  {},
                  val(child.step_name || child.checkpoint_id, 100),
                ),
                " ",
                h("span", { class: "quiet" }, val(child.session_id, 80)),
              ),
            ),
          )
        : h("p", { class: "quiet" }, "none"),
    );
  };
  draw(detail);
  return { refresh: draw };
}

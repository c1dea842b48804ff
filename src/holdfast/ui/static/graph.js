// Lanes from rows in order (newest first, every child above its parent), as one small SVG for each row.
import { s } from "./dom.js";

const WIDTH = 14;
const MOST = 10;
const x = (lane) => 10 + Math.min(lane, MOST - 1) * WIDTH;

// Adds `lanes` to each row: which come in above, which leave below, where its own dot is.
export function lay(rows) {
  const known = new Set(rows.map((row) => row.checkpoint_id));
  // The first lane is the session's own, also below what was forked from its head.
  const first = rows.find((row) => !row.branch)?.checkpoint_id;
  const lanes = first ? [first] : [];
  let hasBegun = false;
  const seen = () => (hasBegun ? lanes.slice() : [null, ...lanes.slice(1)]);
  let widest = 1;
  for (const row of rows) {
    const above = seen();
    hasBegun = hasBegun || row.checkpoint_id === first;
    let own = lanes.indexOf(row.checkpoint_id);
    if (own < 0) {
      own = lanes.indexOf(null);
      if (own < 0) own = lanes.length;
      lanes[own] = row.checkpoint_id;
    }
    for (let at = 0; at < lanes.length; at += 1)
      if (at !== own && lanes[at] === row.checkpoint_id) lanes[at] = null;
    const parent =
      row.lane_parent && (known.has(row.lane_parent) || !row.branch) ? row.lane_parent : null;
    lanes[own] = parent;
    while (lanes.length && lanes[lanes.length - 1] === null) lanes.pop();
    row.lanes = {
      above,
      own,
      below: seen(),
      id: row.checkpoint_id,
      open: Boolean(row.lane_parent) && !parent,
    };
    widest = Math.max(widest, above.length, lanes.length, own + 1);
  }
  return Math.min(widest, MOST);
}

export function drawing(row, height, width) {
  const { above, own, below, id, open } = row.lanes;
  const middle = height / 2;
  const made = s("svg", {
    class: "lanes",
    width: x(width - 1) + 10,
    height,
    "aria-hidden": "true",
    focusable: "false",
  });
  const line = (d, lane, extra = "") =>
    made.append(s("path", { d, class: `lane l${lane % 6} ${extra}` }));
  above.forEach((goes, lane) => {
    if (goes === null || goes === undefined) return;
    if (goes === id)
      line(
        lane === own
          ? `M${x(own)} 0V${middle}`
          : `M${x(lane)} 0C${x(lane)} ${middle} ${x(lane)} ${middle} ${x(own)} ${middle}`,
        lane,
      );
    else line(`M${x(lane)} 0V${height}`, lane);
  });
  if (below[own]) line(`M${x(own)} ${middle}V${height}`, own);
  else if (open) line(`M${x(own)} ${middle}V${height}`, own, "dotted");
  const marks = row.markers || [];
  const kind = marks.includes("failed")
    ? "bad"
    : marks.includes("rolled back")
      ? "past"
      : marks.includes("head")
        ? "head"
        : "";
  made.append(
    s("circle", {
      cx: x(own),
      cy: middle,
      r: marks.includes("head") ? 5 : 4,
      class: `dot l${own % 6} ${kind}`,
    }),
  );
  return made;
}

// A long list of rows of one height: only those in sight are in the page.
import { h, put } from "./dom.js";

const MARGIN = 12;

export function virtual({ height, draw, label, near, key, test }) {
  let rows = [];
  let drawn = new Map();
  let frame = 0;
  const space = h("div", { class: "virtual-space", role: "list", "aria-label": label });
  const box = h("div", { class: "virtual", "data-test": test }, space);

  function paint() {
    frame = 0;
    const top = box.scrollTop;
    const view = box.clientHeight || innerHeight;
    const first = Math.max(0, Math.floor(top / height) - MARGIN);
    const last = Math.min(rows.length, Math.ceil((top + view) / height) + MARGIN);
    const kept = new Map();
    for (let at = first; at < last; at += 1) {
      const name = `${at}:${key ? key(rows[at]) : at}`;
      let row = drawn.get(name);
      if (!row || row.of !== rows[at]) {
        const made = draw(rows[at], at);
        made.classList.add("virtual-row");
        made.style.setProperty("transform", `translateY(${at * height}px)`);
        made.style.setProperty("height", `${height}px`);
        made.setAttribute("role", "listitem");
        made.setAttribute("aria-posinset", at + 1);
        made.setAttribute("aria-setsize", rows.length);
        const focused = row && row.element.contains(document.activeElement);
        if (row) row.element.replaceWith(made);
        else space.append(made);
        if (focused) (made.querySelector("a,button") || made).focus({ preventScroll: true });
        row = { of: rows[at], element: made };
      }
      kept.set(name, row);
    }
    for (const [name, row] of drawn) if (!kept.has(name)) row.element.remove();
    drawn = kept;
    if (near && top + view > rows.length * height - 20 * height) near();
  }
  const later = () => {
    frame = frame || requestAnimationFrame(paint);
  };
  box.addEventListener("scroll", later, { passive: true });
  const watch = new ResizeObserver(later);
  watch.observe(box);

  return {
    box,
    set(given) {
      rows = given;
      space.style.setProperty("height", `${rows.length * height}px`);
      paint();
    },
    again() {
      for (const row of drawn.values()) row.of = null;
      paint();
    },
    reveal(at) {
      const top = at * height;
      if (top < box.scrollTop || top + height > box.scrollTop + box.clientHeight)
        box.scrollTop = Math.max(0, top - box.clientHeight / 2);
      paint();
    },
    focus(at) {
      this.reveal(at);
      const row = [...drawn.values()].find((one) => one.of === rows[at]);
      row?.element.querySelector("a")?.focus({ preventScroll: true });
    },
    close() {
      watch.disconnect();
      cancelAnimationFrame(frame);
      put(space);
    },
  };
}

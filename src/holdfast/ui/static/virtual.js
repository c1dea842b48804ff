// A long list of rows of one height: only those in sight are in the page.
import { h, put, renewed } from "./dom.js";

const MARGIN = 12;

// One row can be reached with the tabulator key: the one that `isChosen`, or the first in sight.
export function virtual({ height, draw, label, near, key, isChosen, test }) {
  let rows = [];
  let drawn = new Map();
  let frame = 0;
  const space = h("div", { class: "virtual-space", role: "list", "aria-label": label });
  const box = h("div", { class: "virtual", "data-test": test }, space);

  function paint() {
    frame = 0;
    const focused = document.activeElement;
    const top = box.scrollTop;
    const view = box.clientHeight || innerHeight;
    const first = Math.max(0, Math.floor(top / height) - MARGIN);
    const last = Math.min(rows.length, Math.ceil((top + view) / height) + MARGIN);
    const kept = new Map();
    for (let at = first; at < last; at += 1) {
      const name = key(rows[at]);
      const row = drawn.get(name);
      let element = row?.element;
      if (!row || row.of !== rows[at]) {
        element = draw(rows[at], at);
        if (row && renewed(row.element, element) === row.element) element = row.element;
        else if (row) row.element.replaceWith(element);
        element.classList.add("virtual-row");
        element.setAttribute("role", "listitem");
        element.style.setProperty("height", `${height}px`);
      }
      element.style.setProperty("transform", `translateY(${at * height}px)`);
      element.setAttribute("aria-posinset", at + 1);
      element.setAttribute("aria-setsize", rows.length);
      kept.set(name, { of: rows[at], element });
    }
    for (const [name, row] of drawn) if (!kept.has(name)) row.element.remove();
    drawn = kept;
    let place = space.firstChild;
    for (const { element } of kept.values()) {
      if (element === place) place = place.nextSibling;
      else space.insertBefore(element, place);
    }
    reach([...kept.values()], top);
    if (focused !== document.activeElement && space.contains(focused))
      focused.focus({ preventScroll: true });
    if (near && top + view > rows.length * height - 20 * height) near();
  }

  function reach(seen, top) {
    const first = Math.ceil(top / height);
    const chosen =
      seen.find((row) => isChosen(row.of)) || seen.find((row) => rows[first] === row.of) || seen[0];
    for (const row of seen)
      row.element.querySelector("a")?.setAttribute("tabindex", row === chosen ? 0 : -1);
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

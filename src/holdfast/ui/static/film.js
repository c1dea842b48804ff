// Stepping through a session: a scrubber from the oldest to the newest, and a film of it.
import { button, h } from "./dom.js";
import { number, plural, visible } from "./format.js";

const PACE = 900;

// `count()` is how many checkpoints there are, `own()` those that were read, newest first,
// `index()` which of them is chosen; `until(n)` reads on until there are n; `choose(row)` turns to one.
export function film({ count, own, index, until, choose }) {
  let playing = 0;
  let waiting = 0;
  const scrubber = h("input", {
    type: "range",
    min: 1,
    max: 1,
    value: 1,
    class: "scrubber",
    "aria-label": "Checkpoint, oldest to newest",
    "data-test": "scrubber",
    input: () => scrub(Number(scrubber.value)),
  });
  const position = h("span", { class: "quiet position", "data-test": "position" });
  const play = button("▶", toggle, {
    class: "button small",
    "aria-label": "Play as a film",
    title: "Play as a film (space)",
    "data-test": "play",
  });

  function place() {
    const total = Math.max(count(), own().length, 1);
    const at = index();
    const words =
      at >= 0 ? `${number(total - at)} of ${number(total)}` : plural(total, "checkpoint");
    scrubber.max = total;
    if (at >= 0) scrubber.value = total - at;
    position.textContent = words;
    const name = at >= 0 ? visible(own()[at].step_name, 120) : "";
    scrubber.setAttribute("aria-valuetext", name ? `${words}, ${name}` : words);
  }

  function scrub(value) {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      const at = Number(scrubber.max) - value;
      await until(at + 1);
      const row = own()[Math.min(at, own().length - 1)];
      if (row) choose(row);
    }, 40);
  }

  function stop() {
    clearTimeout(playing);
    playing = 0;
    play.textContent = "▶";
    play.setAttribute("aria-label", "Play as a film");
  }

  // From the chosen one to the newest; from the newest the whole film begins anew.
  async function toggle() {
    if (playing) {
      stop();
      return;
    }
    playing = -1;
    play.textContent = "❚❚";
    play.setAttribute("aria-label", "Stop the film");
    const isWhole = index() <= 0;
    if (isWhole) await until(count());
    // Others may save meanwhile: where it is, is where the chosen one is now.
    const next = async (from) => {
      if (!playing) return;
      if (from < 0) {
        stop();
        return;
      }
      await choose(own()[from]);
      if (playing) playing = setTimeout(() => next(index() - 1), PACE);
    };
    next((isWhole ? own().length : index()) - 1);
  }

  return {
    element: h("div", { class: "film" }, play, scrubber, position),
    place,
    stop,
    toggle,
    isPlaying: () => Boolean(playing),
    close() {
      stop();
      clearTimeout(waiting);
    },
  };
}

// What other processes write, as it happens; one connection for the page, while it is seen: a browser
// has but a few for all its tabs. Whoever connects is told that anything may have changed.

import { get } from "./api.js";

const UNSEEN = 10000;
// The server says something every 15 seconds; one that is silent for longer has gone.
const SILENT = 40000;
const GONE = "This page shows what was read last";

export function follow({ changed, lost, back }) {
  let source = null;
  let gone = false;
  let wait = 500;
  let timer = 0;
  let silence = 0;
  const tell = (words) => {
    gone = true;
    lost(words);
  };
  const returned = () => {
    wait = 500;
    if (gone) {
      gone = false;
      back();
    }
  };
  const parse = (event) => {
    try {
      return JSON.parse(event.data || "{}");
    } catch {
      return {};
    }
  };

  function open() {
    clearTimeout(timer);
    source?.close();
    const mine = new EventSource(new URL("api/v1/events", document.baseURI));
    source = mine;
    const heard = (act) => (event) => {
      clearTimeout(silence);
      silence = setTimeout(failed, SILENT);
      act?.(event);
    };
    const failed = async () => {
      mine.close();
      clearTimeout(silence);
      if (mine !== source) return;
      const isUnknown = await refused();
      if (mine !== source) return;
      if (isUnknown) {
        tell(`holdfast ui was started anew: open the link that it printed. ${GONE}.`);
        wait = 5000;
      } else tell(`The server does not answer. ${GONE}, and tries again.`);
      timer = setTimeout(open, wait);
      wait = Math.min(wait * 2, 5000);
    };
    mine.addEventListener("hello", heard(returned));
    mine.addEventListener(
      "changed",
      heard((event) => changed(parse(event))),
    );
    mine.addEventListener(
      "lost",
      heard((event) =>
        tell(`The store is gone: ${parse(event).message || "it does not answer"}. ${GONE}.`),
      ),
    );
    mine.addEventListener("back", heard(returned));
    mine.addEventListener("ping", heard());
    mine.addEventListener("error", failed);
  }
  // Whether a server answers that does not know this page any more.
  async function refused() {
    try {
      await get("about");
      return false;
    } catch (error) {
      return error.status === 401;
    }
  }
  const close = () => {
    clearTimeout(silence);
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  const hide = () => {
    timer = setTimeout(close, UNSEEN);
  };
  open();
  if (document.hidden) hide();
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => {
    if (event.persisted) open();
  });
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) hide();
    else if (!source || source.readyState === EventSource.CLOSED) open();
  });
}

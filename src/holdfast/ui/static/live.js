// What other processes write, as it happens; one connection for the page, while it is seen: a browser
// has but a few for all its tabs. Whoever connects is told that anything may have changed.

const UNSEEN = 10000;

export function follow({ changed, lost, back }) {
  let source = null;
  let gone = false;
  let wait = 500;
  let timer = 0;
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
    mine.addEventListener("hello", returned);
    mine.addEventListener("changed", (event) => changed(parse(event)));
    mine.addEventListener("lost", (event) =>
      tell(
        `The store is gone: ${parse(event).message || "it does not answer"}. This page shows what was read last.`,
      ),
    );
    mine.addEventListener("back", returned);
    mine.addEventListener("error", () => {
      mine.close();
      if (mine !== source) return;
      tell("The server does not answer. This page shows what was read last, and tries again.");
      timer = setTimeout(open, wait);
      wait = Math.min(wait * 2, 5000);
    });
  }
  const close = () => {
    clearTimeout(timer);
    source?.close();
    source = null;
  };
  open();
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => {
    if (event.persisted) open();
  });
  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.hidden) timer = setTimeout(close, UNSEEN);
    else if (!source || source.readyState === EventSource.CLOSED) open();
  });
}

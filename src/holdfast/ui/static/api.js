// The one way to the server.

class Failure extends Error {
  constructor(status, error) {
    super(error.message || "The server gave no reason.");
    this.status = status;
    this.kind = error.kind || "";
    this.suggestions = error.suggestions || [];
    this.unless = error.unless || null;
    this.title = TITLES.get(this.kind) || (status === 401 ? "Not signed in" : "That did not work");
    this.remedy = REMEDIES[status] || "";
  }
}

const TITLES = new Map([
  ["not_found", "Not found"],
  ["ambiguous", "More than one fits"],
  ["refused", "Refused"],
  ["damaged", "Damaged"],
  ["unreachable", "The store cannot be reached"],
  ["usage", "That does not fit"],
  ["offline", "The server cannot be reached"],
]);
const REMEDIES = {
  0: "If it was stopped, start holdfast ui again and open the link that it prints.",
  401: "The server was started anew: open the link that holdfast ui printed.",
  403: "This page may only read, or it was opened under another name than the server's.",
  422: "holdfast verify names everything that is damaged.",
  503: "It is tried again by itself.",
};

export function query(given) {
  const made = new URLSearchParams();
  for (const [name, value] of Object.entries(given || {})) {
    for (const one of [value].flat())
      if (one !== null && one !== undefined && one !== "" && one !== false)
        made.append(name, one === true ? "1" : one);
  }
  const text = made.toString();
  return text ? `?${text}` : "";
}

export const address = (name, given) => `api/v1/${name}${query(given)}`;

async function ask(where, options) {
  let answer;
  try {
    answer = await fetch(where, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(0, { kind: "offline", message: "The server does not answer." });
  }
  if (answer.ok) return answer;
  let told = {};
  try {
    told = (await answer.json()).error || {};
  } catch {
    told = { message: `The server answered ${answer.status}.` };
  }
  if (answer.status === 401 && !told.message) told.message = "This page is not signed in.";
  throw new Failure(answer.status, told);
}

const read = async (where) =>
  (await ask(where, { headers: { accept: "application/json" } })).json();

// What a view will ask for at once is asked for while its code is still being read.
const begun = new Map();
export function ahead(name, given) {
  const where = address(name, given);
  const reading = read(where);
  reading.catch(() => {}); // who gets it hears of it
  begun.set(where, reading);
}

export function get(name, given) {
  const where = address(name, given);
  const reading = begun.get(where);
  begun.delete(where);
  return reading || read(where);
}

export async function post(name, body) {
  const answer = await ask(`api/v1/${name}`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
  });
  return answer.json();
}

const MOST = 20000000;
export async function text(where) {
  const answer = await ask(where, {});
  return (await answer.text()).slice(0, MOST);
}

let told = {};
try {
  told = JSON.parse(document.querySelector('meta[name="holdfast"]').content);
} catch {
  told = {};
}
export const settings = { read_only: false, version: "", ...told };

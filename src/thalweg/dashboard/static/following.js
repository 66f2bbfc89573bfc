// Gets what a server says, and follows what comes; for all pages.

import { setText } from "./dom.js";

// Milliseconds after which no answer is expected any more, and before it is asked again.
const PATIENCE = 60_000;
const AGAIN = 2000;

export const byId = (id) => document.getElementById(id);

export async function get(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(PATIENCE) });
  if (!answer.ok) throw new Error(await reason(answer));
  return answer.json();
}

// Why a request was refused; some refusals are said before anybody speaks JSON.
export async function reason(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).error ?? text;
  } catch {
    return text || `the server answers ${answer.status}`;
  }
}

// Follows the stream of records as long as somebody sees the page. A browser has six connections to
// a host for all its tabs, and a stream holds one: a tab that nobody sees lets go of its own.
export class Following {
  // told: address() of the stream, take() (asks for what was missed), add(record),
  // changed(connected, why) and ended(other) (no more will come here; whether that is because another run is here)
  constructor(told) {
    this.told = told;
    this.source = null;
    this.wanted = false;
    this.waiting = 0;
    document.addEventListener("visibilitychange", () => this.turn());
  }

  start() {
    this.wanted = true;
    this.turn();
  }

  turn() {
    clearTimeout(this.waiting);
    if (!this.wanted || document.visibilityState === "hidden") this.close();
    else if (this.source === null) this.open();
  }

  close() {
    this.source?.close();
    this.source = null;
  }

  open() {
    const { told } = this;
    const source = this.source = new EventSource(told.address());
    source.onopen = () => told.changed(true, "");
    source.onmessage = (message) => told.add(JSON.parse(message.data));
    source.onerror = () => {
      if (source !== this.source) return;
      told.changed(false, "");
      if (source.readyState === EventSource.CLOSED) this.refused();  // else it comes again by itself
    };
    source.addEventListener("end", (message) => {
      this.wanted = false;
      this.close();
      told.changed(false, "");
      told.ended(JSON.parse(message.data).other === true);
    });
  }

  // A browser does not come again where it was refused. Until there is room, what has come is asked for.
  async refused() {
    const { told } = this;
    this.close();
    told.changed(false, await this.why());
    try {
      await told.take();
    } catch {
      // It is asked again.
    }
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.turn(), AGAIN);
  }

  async why() {
    const asked = new AbortController();
    try {
      const answer = await fetch(this.told.address(), { signal: asked.signal });
      return answer.ok ? "" : await reason(answer);
    } catch (error) {
      return error.message;
    } finally {
      asked.abort();
    }
  }
}

// Calls a function until it has come to its end, and says what is wrong as long as it has not.
export async function trying(begin) {
  try {
    await begin();
  } catch (error) {
    setText(byId("state"), error.message);
    setTimeout(() => trying(begin), AGAIN);
  }
}

// The link past the navigation; an address would be read as that of a view.
export function skips() {
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
}

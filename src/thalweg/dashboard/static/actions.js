// Actions: each is confirmed, and needs the token that the address was printed with.

import { el, setText } from "./dom.js";
import { byId, reason } from "./following.js";

// Milliseconds; a server asks the process of a topology meanwhile.
const PATIENCE = 30_000;

function confirmed(title, text, yes) {
  const dialog = byId("dialog");
  setText(byId("dialog-title"), title);
  setText(byId("dialog-text"), text);
  setText(byId("dialog-yes"), yes);
  return new Promise((resolve) => {
    let sure = false;
    byId("dialog-yes").onclick = () => { sure = true; dialog.close(); };
    byId("dialog-no").onclick = () => dialog.close();
    dialog.onclose = () => resolve(sure);
    dialog.showModal();
    byId("dialog-no").focus();
  });
}

let silence = 0;

export function say(text, bad = false) {
  const said = byId("said");
  setText(said, text);
  said.classList.toggle("bad", bad);
  said.hidden = false;
  clearTimeout(silence);
  silence = setTimeout(() => { said.hidden = true; }, 8000);
}

export async function act(name, body, question) {
  if (!(await confirmed(question.title, question.text, question.yes))) return;
  try {
    const answer = await fetch(`api/actions/${encodeURIComponent(name)}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(PATIENCE),
    });
    say(answer.ok ? (await answer.json()).text : await reason(answer), !answer.ok);
  } catch (error) {
    const why = error.name === "TimeoutError" ? `not within ${PATIENCE / 1000} s` : error.message;
    say(`the run does not answer: ${why}`, true);
  }
}

const QUESTIONS = {
  pause: { label: "Pause", title: "Pause the sources?", text: "No source is asked for tuples until you resume. What is under way goes on.", yes: "Pause" },
  resume: { label: "Resume", title: "Resume the sources?", text: "Sources are asked for tuples again.", yes: "Resume" },
  reroute: { label: "Reroute now", title: "Decide now where keys should be?", text: "Keys that occur together are brought to one place, if that pays. State moves while tuples flow.", yes: "Reroute" },
  kill: { label: "Stop the run", title: "Stop this run?", text: "Sources end, what is under way is finished, and the run ends. It cannot be resumed here.", yes: "Stop it" },
};

// The buttons that a run supports.
export class Buttons {
  constructor() {
    this.made = {};
    this.row = el("div", { class: "buttons" });
    this.note = el("p", { class: "note" });
    for (const [name, question] of Object.entries(QUESTIONS)) {
      const button = el("button", {
        type: "button",
        "data-action": name,
        class: name === "kill" ? "danger" : null,
        on: { click: () => act(name, {}, question) },
      }, question.label);
      this.made[name] = button;
      this.row.append(button);
    }
    this.element = el("div", {}, this.row, this.note);
  }

  show(model) {
    const { state } = model, hindered = hindrance(model), focused = document.activeElement;
    for (const [name, button] of Object.entries(this.made)) {
      const there = state.actions.includes(name);
      button.hidden = !there;
      const idle = (name === "pause" && model.paused) || (name === "resume" && !model.paused);
      button.disabled = hindered !== "" || idle;
    }
    // Who paused by keyboard goes on where it can be taken back; a button that is disabled loses the focus.
    const { pause, resume } = this.made;
    if (focused === pause && pause.disabled) resume.focus();
    if (focused === resume && resume.disabled) pause.focus();
    setText(this.note, hindered);
  }
}

// Why nothing can be done now; empty where something can.
export function hindrance({ state, over, connected }) {
  if (state.live === false) return "This is a recording: there is nothing to steer.";
  if (over && !state.several) return "The run is over.";
  if (connected === null) return "Loading.";
  if (!connected) return "Not connected: actions come back with the connection.";
  if (!state.known) return "To act, open the address that was printed in the terminal: it has the token.";
  return "";
}

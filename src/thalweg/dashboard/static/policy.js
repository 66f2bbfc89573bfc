// Lets another scaling policy decide.

import { act, hindrance } from "./actions.js";
import { el, section, setText } from "./dom.js";

export class SetPolicy {
  constructor() {
    this.choice = el("select", { id: "policy", on: { change: () => { this.touched = true; } } });
    this.button = el("button", { type: "submit", "data-action": "set-policy" }, "Set policy");
    this.note = el("p", { class: "note" });
    this.touched = false;
    const ask = (event) => {
      event.preventDefault();
      this.touched = false;
      const policy = this.choice.value;
      act("set-policy", { policy }, {
        title: `Let ${policy} decide about degrees?`,
        text: policy === "static"
          ? "Degrees stay as they are from now on."
          : "It takes over before the next decision, with what was measured so far, and changes degrees while tuples flow.",
        yes: "Set policy",
      });
    };
    this.now = el("p", { id: "leading" });
    this.form = el("form", { on: { submit: ask } }, el("label", { for: "policy" }, "Policy "), this.choice, " ", this.button);
    this.element = section("Who decides", this.now, this.form, this.note);
  }

  update(model) {
    const { state, policy } = model, hindered = hindrance(model);
    const names = state.policies ?? [];
    this.form.hidden = this.note.hidden = names.length === 0;
    this.element.hidden = names.length === 0 && !policy;
    setText(this.now, policy ? `${policy} decides about degrees.` : "Degrees stay as they are: no policy decides about them.");
    const known = JSON.stringify(names);
    if (known !== this.known) {
      this.known = known;
      this.choice.replaceChildren(...names.map((each) => el("option", { value: each }, each)));
    }
    if (!this.touched && names.includes(policy) && document.activeElement !== this.choice) this.choice.value = policy;
    this.button.disabled = hindered !== "";
    setText(this.note, hindered);
  }
}

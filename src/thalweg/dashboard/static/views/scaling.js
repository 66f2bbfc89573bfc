// Input, capacity, pending tuples and degrees over one time axis, and what policies said.

import { Chart, COLOURS } from "../charts.js";
import { SetPolicy } from "../policy.js";
import { el, Maybe, section, setText, Table, toComponent } from "../dom.js";
import { clock, count, rate } from "../format.js";
import { bridged, busyShare, component, isWish, series, times, wishes } from "../store.js";

// Rows of decisions that were carried out, and of wishes, the newest ones.
const MOST_DONE = 1000;
const MOST_WISHES = 200;

export class Scaling {
  constructor() {
    this.choice = el("select", { id: "scaled", on: { change: () => { this.touched = true; if (this.last) this.update(this.last); } } });
    this.touched = false;
    this.load = new Chart({ title: "Input and capacity, tuples per second", format: rate, group: "scaling", gaps: true, empty: "Nothing has come to this component so far." });
    this.pending = new Chart({ title: "Tuples that wait", format: count, group: "scaling", empty: "This runtime does not say how many tuples wait for a component." });
    this.degrees = new Chart({ title: "Degree", format: count, stepped: true, group: "scaling" });
    this.log = new Table([{ name: "Time" }, { name: "Policy" }, { name: "Decision and reason" }], "Decisions");
    this.sum = el("p", {});
    this.said = new Maybe("Nothing was carried out so far.", this.log.element);
    this.past = new Table([{ name: "Time" }, { name: "Until" }, { name: "Policy" }, { name: "Looks", number: true }, { name: "What it would have done and why" }], "Wishes");
    this.wished = new Maybe("No policy wished for anything that was not done.",
      this.cut = el("p", { class: "note" }), this.past.element);
    this.decided = new Maybe("No scaling policy looks at this run: thalweg run --scale POLICY has one lead, thalweg scale --dry-run asks all of them.",
      this.sum, this.said.element);
    this.others = new Table([{ name: "Component" }, { name: "Degree", number: true }, { name: "What each policy wants" }], "What policies want");
    this.policy = new SetPolicy();
    this.wanted = new Maybe("", this.others.element);
    this.alone = el("p", { class: "note" });
    this.element = el("div", { class: "view", "data-view": "scaling" },
      el("p", {}, el("label", { for: "scaled" }, "Component "), this.choice),
      el("div", { class: "charts one" }, this.load.element, this.pending.element, this.degrees.element),
      el("p", { class: "note" }, "Input is what arrives at the component; its capacity is what its tasks could process if they worked all the time, from what a tuple has cost since the look before."),
      this.policy.element,
      section("Decisions", this.decided.element),
      section("What policies want now", this.wanted.element, this.alone),
      section("What policies would have done", this.wished.element));
  }

  update(model) {
    this.last = model;
    this.fillChoice(model);
    const { looks } = model;
    const at = times(looks), name = this.choice.value;
    this.load.show(at, [
      { name: "input", values: series(looks, (now, before) => input(now, before, name)) },
      { name: "capacity", values: bridged(series(looks, (now, before) => capacity(now, before, name))) },
    ]);
    this.pending.show(at, [
      { name, values: series(looks, (s) => component(s, name)?.waiting ?? null) },
      { name: "all", values: series(looks, (s) => s.pending ?? null) },
    ]);
    const bolts = (model.topology?.components ?? []).filter((each) => each.kind !== "spout");
    const lines = bolts.map((bolt, index) => ({
      name: bolt.name, chosen: bolt.name === name, values: series(looks, (s) => component(s, bolt.name)?.degree ?? null),
      // A component keeps its colour; of more than there are colours, those that are shown have one each.
      colour: bolts.length > COLOURS ? null : index,
    }));
    this.degrees.show(at, [...lines.filter((line) => line.chosen), ...lines.filter((line) => !line.chosen)]);
    this.policy.update(model);
    this.showDecisions(model);
  }

  // Begins with the busiest component, until somebody chooses.
  fillChoice(model) {
    const names = (model.topology?.components ?? []).filter((each) => each.kind !== "spout").map((each) => each.name);
    if (JSON.stringify(names) !== this.names) {
      this.names = JSON.stringify(names);
      this.choice.replaceChildren(...names.map((each) => el("option", { value: each }, each)));
    }
    if (!this.touched && model.now && names.length) {
      this.choice.value = names.reduce((best, each) => ((busyShare(model, each) ?? 0) > (busyShare(model, best) ?? 0) ? each : best));
      this.touched = model.before !== null;
    }
  }

  showDecisions(model) {
    const made = model.others.filter((each) => each.kind === "decided");
    if (this.decided.show(made.length > 0)) {
      const done = made.filter((each) => each.text && !isWish(each));
      setText(this.sum, `Looks of policies: ${count(made.length)}; decisions that were carried out: ${shownOf(done, MOST_DONE)}.`);
      if (this.said.show(done.length > 0)) this.log.fill(done.slice(-MOST_DONE).reverse().map((each) => [
        clock(each.at), each.policy, { text: each.text, pre: true }]));
    }
    this.showWishes(wishes(made));
    // Who was replaced wants nothing any more.
    const since = made.slice(made.findLastIndex((each) => each.replaces != null) + 1);
    const asked = new Set(since.map((each) => each.policy));
    // All are asked in one look; what they wanted at looks before is over.
    const newest = since.filter((each) => each.time === since.at(-1).time);
    const last = new Map(newest.map((each) => [each.policy, each.degrees]));
    const names = [...new Set([...last.values()].flatMap((degrees) => Object.keys(degrees)))];
    // Commands ask all policies where somebody looks; a program or a server asks the one that leads.
    this.wanted.say(last.size ? `${[...last.keys()].join(", ")} wants nothing now.` : "No policy has been asked.");
    setText(this.alone, asked.size === 1
      ? `Only ${[...asked][0]} was asked. What the other policies would do is told by thalweg scale FILE --dry-run.`
      : asked.size ? "" : "What policies would do is told by thalweg scale FILE --dry-run.");
    if (this.wanted.show(names.length > 0)) {
      this.others.fill(names.map((name) => {
        const asking = [...last].filter(([, degrees]) => degrees[name]);
        return [toComponent(name), count(component(model.now, name)?.degree), asking.map(([policy, degrees]) => `${policy} ${degrees[name][1]}`).join(", ")];
      }));
    }
  }

  showWishes(made) {
    setText(this.cut, `A wish that a policy had look after look is one row, with its last reason. Rows: ${shownOf(made, MOST_WISHES)}.`);
    if (this.wished.show(made.length > 0)) this.past.fill(made.slice(-MOST_WISHES).reverse().map((each) => [
      clock(each.at), clock(each.until), each.policy, count(each.times), { text: each.text, pre: true }]));
  }

  destroy() {
    for (const chart of [this.load, this.pending, this.degrees]) chart.destroy();
  }
}

function shownOf(rows, most) {
  return rows.length > most ? `${count(rows.length)}, the last ${count(most)} shown` : count(rows.length);
}

// What was processed, and what began to wait.
function input(now, before, name) {
  const [last, first] = [component(now, name), component(before, name)];
  const span = before ? now.elapsed - before.elapsed : 0;
  if (!last || !first || span <= 0) return null;
  return Math.max(0, last.received - first.received + (last.waiting ?? 0) - (first.waiting ?? 0)) / span;
}

function capacity(now, before, name) {
  const [last, first] = [component(now, name), component(before, name)];
  if (!last || !first) return null;
  const busy = last.busy - first.busy, done = last.received - first.received;
  return busy > 0 && done > 0 ? last.degree * done / busy : null;
}

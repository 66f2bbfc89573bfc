// One component in Storm's words: by window, and task by task.

import { act, hindrance } from "../actions.js";
import { Chart } from "../charts.js";
import { el, Maybe, section, setText, Table, UNMEASURED } from "../dom.js";
import { clock, count, millis, rate, seconds, share } from "../format.js";
import { component, MANY_TASKS, parted, perSecond, series, sharesOver, times } from "../store.js";

const STORM = [
  ["Emitted", (s) => count(s.emitted)],
  ["Transferred", (s) => count(s.transferred)],
  ["Executed", (s) => count(s.executed)],
  ["Execute latency (ms)", (s) => millis(s.execute_latency)],
  ["Process latency (ms)", (s) => millis(s.process_latency)],
  ["Complete latency (ms)", (s) => millis(s.complete_latency)],
  ["Capacity", (s) => share(s.capacity)],
  ["Acked", (s) => count(s.acked)],
  ["Failed", (s) => count(s.failed)],
];
const columns = (first) => [{ name: first }, ...STORM.map(([name]) => ({ name, number: true }))];
const cells = (stats) => STORM.map(([, read]) => (stats ? read(stats) : null));
const ERRORS = 20;

export class Component {
  constructor(name) {
    this.name = name;
    this.about = el("p", { class: "muted" });
    this.time = el("p", {});
    this.windows = new Table(columns("Window"), "Figures by window");
    this.tasks = new Table([...columns("Task"), { name: "Received", number: true }], "Figures by task");
    this.errors = new Table([{ name: "Time" }, { name: "Task", number: true }, { name: "Reason" }, { name: "Tuple" }], "Errors");
    this.noErrors = new Maybe("It has refused nothing.", this.errors.element);
    this.rates = new Chart({ title: "Tuples per second", format: rate });
    this.waiting = new Chart({ title: "Tuples that wait for it", format: count, empty: "This runtime does not say how many tuples wait for a component." });
    this.shares = new Chart({ title: "How its tasks' time was spent", format: share, top: 1, empty: "This runtime does not say how much time was spent inside it." });
    this.window = el("select", { id: "window", on: { change: () => this.last && this.update(this.last) } });
    this.form = new Rebalance(name);
    this.known = new Maybe("",
      this.about, this.time,
      section("By window", this.windows.element),
      el("div", { class: "charts" }, this.rates.element, this.waiting.element, this.shares.element),
      section("By task", this.choice = el("p", {}, el("label", { for: "window" }, "Window "), this.window), this.tasks.element,
        this.untold = el("p", { class: "note" })),
      section("Errors", this.noErrors.element),
      this.form.element);
    this.element = el("div", { class: "view", "data-view": "component" },
      el("h2", { class: "big", tabindex: "-1" }, name), this.known.element);
  }

  update(model) {
    this.last = model;
    const now = component(model.now, this.name);
    const named = model.topology?.components.some((each) => each.name === this.name) ?? true;
    this.known.say(named ? UNMEASURED : "There is no component of this name in the run.");
    if (!this.known.show(now !== null)) return;
    this.describe(model, now);
    const stats = Object.keys(now.stats).length ? now.stats : { "all time": totals(model, now) };
    const names = Object.keys(stats);
    if (this.window.options.length !== names.length) {
      this.window.replaceChildren(...names.map((each) => el("option", { value: each }, each)));
    }
    this.windows.fill(names.map((each) => [each, ...cells(stats[each])]));
    this.tasks.fill(now.per_task.slice(0, now.degree).map((received, task) => (
      [String(task), ...cells(now.task_stats[task]?.[this.window.value]), count(received)])));
    this.choice.hidden = now.task_stats.length === 0;
    setText(this.untold, untold(model, now));
    const { looks } = model;
    const of = (read) => (s) => { const each = component(s, this.name); return each ? read(each) : null; };
    this.rates.show(times(looks), [
      { name: "received", values: series(looks, perSecond(of((each) => each.received))) },
      { name: "emitted", values: series(looks, perSecond(of((each) => each.emitted))) },
    ]);
    this.waiting.show(times(looks), [{ name: "waiting", values: series(looks, of((each) => each.waiting)) }]);
    const spent = series(looks, sharesOver(this.name));
    const kinds = { busy: "busy", pressed: "back-pressured", waiting: "waiting" };
    this.shares.show(times(looks), Object.entries(kinds).map(([field, name]) => (
      { name, colour: `--${field}`, values: spent.map((each) => each[field]) })));
    this.showErrors(model);
    this.form.update(model, now);
  }

  describe(model, now) {
    const known = model.topology?.components.find((each) => each.name === this.name);
    const reads = (model.topology?.streams ?? []).filter((each) => each.to === this.name);
    const parts = [`${known?.kind ?? "component"} with ${now.degree} ${now.degree === 1 ? "task" : "tasks"}`];
    if (reads.length) parts.push(`reads ${reads.map((each) => `${each.from} (${each.grouping}, order ${each.order})`).join(", ")}`);
    for (const [stream, fields] of Object.entries(known?.fields ?? {})) {
      parts.push(`sends ${stream === "default" ? "" : `${stream}: `}(${fields.join(", ")})`);
    }
    if (known?.tick) parts.push(`tick every ${known.tick} s`);
    if (known?.isolation === "process") parts.push("in processes of its own");
    if (now.state_keys) parts.push(`${count(now.state_keys)} keys in the runs of its state`);
    setText(this.about, parts.join("; "));
    const told = [watermark(now), lost(now)].filter((each) => each !== "");
    setText(this.time, told.join(". "));
    this.time.hidden = told.length === 0;
  }

  showErrors(model) {
    const refused = model.told.filter((each) => each.component === this.name && (each.kind.endsWith("_refused") || each.kind === "run_failed"));
    const rows = refused.slice(-ERRORS).reverse().map((each) => [
      clock(each.at), each.task ?? null, { text: each.reason ?? each.text, pre: true }, { text: each.tuple_text ?? each.raw, pre: true }]);
    if (this.noErrors.show(rows.length > 0)) this.errors.fill(rows);
  }

  destroy() {
    this.rates.destroy();
    this.waiting.destroy();
    this.shares.destroy();
  }
}

// How far event time has come there.
function watermark(now) {
  if (typeof now.watermark !== "number") return "";
  const at = new Date(1e3 * now.watermark);
  const shown = Number.isNaN(at.getTime()) ? `${now.watermark} s` : at.toISOString().replace("T", " ").replace("Z", " UTC");
  return `Watermark ${shown}, ${seconds(now.behind)} behind the newest tuple of its sources`;
}

function lost(now) {
  const words = [[now.errors, "refused"], [now.late, "too late"], [now.dropped, "dropped"]];
  const found = words.filter(([many]) => many > 0).map(([many, word]) => `${count(many)} ${word}`);
  return found.length ? `Not processed: ${found.join(", ")}` : "";
}

// Why figures of single tasks are missing.
function untold(model, now) {
  if (now.task_stats.length) return "";
  if (model.now.slim) return `The run has more than ${MANY_TASKS} tasks: the page keeps what each has done only for the newest look. Received is known.`;
  if (now.per_task.length < now.degree) return "Its tasks share one queue, and are counted together.";
  return "This runtime counts only what each task has received.";
}

// What a runtime without windows knows.
function totals(model, now) {
  return {
    seconds: model.now.elapsed,
    emitted: now.emitted,
    transferred: now.shuffled + now.local || now.emitted,
    executed: now.received,
    execute_latency: now.received ? now.busy / now.received : null,
  };
}

// Who may take back what a visitor asks for.
function undone(policy) {
  return policy && policy !== "static" ? ` The policy ${policy} may change it again; with the policy static, among Scaling, it stays.` : "";
}

// Asks for another number of tasks.
class Rebalance {
  constructor(name) {
    this.input = el("input", { id: "degree", type: "number", min: 1, max: 1024, value: 1 });
    this.button = el("button", { type: "submit", "data-action": "rebalance" }, "Rebalance");
    this.note = el("p", { class: "note" });
    const ask = (event) => {
      event.preventDefault();
      const degree = Number(this.input.value);
      act("rebalance", { component: name, degree }, {
        title: `Give ${name} ${degree} ${degree === 1 ? "task" : "tasks"}?`,
        text: `Its state moves while tuples flow; only keys that move wait.${this.apart(degree)}${undone(this.policy)}`,
        yes: "Rebalance",
      });
    };
    this.form = el("form", { on: { submit: ask } }, el("label", { for: "degree" }, "Tasks "), this.input, " ", this.button);
    this.element = section("Rebalance", this.form, this.note);
    this.touched = false;
    this.input.addEventListener("input", () => { this.touched = true; });
  }

  update(model, now) {
    const { state } = model, hindered = hindrance(model);
    this.policy = model.policy;
    this.apart = (degree) => {
      const text = parted(model, { [now.component]: degree });
      return text && ` ${text[0].toUpperCase()}${text.slice(1)}.`;
    };
    const can = state.actions.includes("rebalance") && state.bolts.includes(now.component);
    this.element.hidden = !can;
    this.button.disabled = hindered !== "";
    if (!this.touched) this.input.value = String(now.degree);
    setText(this.note, hindered);
  }
}

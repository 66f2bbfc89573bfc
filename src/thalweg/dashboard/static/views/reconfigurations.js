// What was moved while tuples flowed: why, how much, how long, and what it brought.

import { Chart, NO_TRAVEL } from "../charts.js";
import { el, Maybe, section, setText, Table } from "../dom.js";
import { bytes, clock, count, number, rate, seconds, share } from "../format.js";
import { overSince, perSecond, series, times } from "../store.js";

export class Reconfigurations {
  constructor() {
    this.sum = el("p", {});
    this.table = new Table([
      { name: "Time" }, { name: "Epoch", number: true }, { name: "Reason" },
      { name: "Keys", number: true }, { name: "State", number: true }, { name: "Steps", number: true }, { name: "Pause", number: true },
      { name: "Locality before", number: true }, { name: "predicted", number: true }, { name: "after", number: true },
      { name: "Imbalance before", number: true }, { name: "predicted", number: true }, { name: "after", number: true },
    ], "Reconfigurations");
    this.rates = new Chart({ title: "Tuples per second meanwhile", format: rate, group: "moves" });
    this.stayed = new Chart({ title: "Share of tuples that stayed at their place", format: share, top: 1, group: "moves", empty: NO_TRAVEL });
    this.maybe = new Maybe("",
      this.sum, this.table.element);
    this.element = el("div", { class: "view", "data-view": "reconfigurations" },
      section("Reconfigurations", this.maybe.element),
      el("div", { class: "charts" }, this.rates.element, this.stayed.element));
  }

  update(model) {
    const made = model.others.filter((each) => each.kind === "reconfigured");
    // Who counts keys also moves them.
    const learns = model.learns || model.state.actions.includes("reroute");
    this.maybe.say(learns
      ? "Nothing has been reconfigured so far. Keys that occur together are counted, and moved if that pays; degrees change with --scale, thalweg rebalance or the button of a component."
      : "Nothing has been reconfigured. Degrees change with --scale, thalweg rebalance or the button of a component; keys move with --locality.");
    if (this.maybe.show(made.length > 0)) {
      const total = (field) => made.reduce((sum, each) => sum + (each.report[field] ?? 0), 0);
      setText(this.sum, `${count(made.length)} in all: ${count(total("keys"))} keys and ${bytes(total("bytes"))} of state moved, ${seconds(total("pause"))} of pause.`);
      this.table.fill([...made].reverse().map(row));
    }
    const { looks } = model;
    const at = times(looks);
    this.rates.show(at, [
      { name: "in", values: series(looks, perSecond((s) => s.tuples_in)) },
      { name: "out", values: series(looks, perSecond((s) => s.tuples_out)) },
    ]);
    this.stayed.show(at, [{ name: "stayed", values: series(looks, stayed) }]);
  }

  destroy() {
    this.rates.destroy();
    this.stayed.destroy();
  }
}

function row(record) {
  const { report } = record;
  const scores = [report.before, report.predicted, report.after];
  return [
    clock(overSince(record)), count(report.epoch), { text: report.reason, pre: true }, count(report.keys), bytes(report.bytes), count(report.steps), seconds(report.pause),
    ...scores.map(locality), ...scores.map((score) => number(score?.imbalance)),
  ];
}

// Shares of few tuples say little; older recordings do not know how little.
function locality(score) {
  const off = Math.ceil(100 * (score?.error ?? 0));
  return off ? `${share(score.locality)} ± ${off}` : share(score?.locality);
}

// Between two looks, not since the start.
function stayed(now, before) {
  const sum = (snapshot, field) => snapshot?.components.reduce((total, each) => total + each[field], 0) ?? 0;
  const local = sum(now, "local") - sum(before, "local");
  const all = local + sum(now, "shuffled") - sum(before, "shuffled");
  return all > 0 ? local / all : null;
}

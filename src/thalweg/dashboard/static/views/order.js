// On this machine: what waits for its turn, and what workers chose. On Spark: batches.

import { Chart } from "../charts.js";
import { el, Maybe, section, Table, toComponent, UNMEASURED } from "../dom.js";
import { count, seconds, share } from "../format.js";
import { lines as latencies, span } from "../latency.js";
import { component, series, times } from "../store.js";
import { Batches } from "./batches.js";

const LATENCY = ["Latency", ": what waits at the head holds all behind it"];

export class Order {
  constructor() {
    this.order = new LocalOrder();
    this.batches = new Batches();
    this.element = el("div", { class: "view", "data-view": "order" }, this.order.element, this.batches.element);
  }

  update(model) {
    const spark = model.topology?.runtime === "spark";
    this.order.element.hidden = spark;
    this.batches.element.hidden = !spark;
    if (spark) this.batches.update(model);
    else this.order.update(model);
  }

  destroy() {
    this.order.destroy();
    this.batches.destroy();
  }
}

class LocalOrder {
  constructor() {
    this.table = new Table([
      { name: "Component" }, { name: "Order asked for" }, { name: "Order in force" }, { name: "Waiting tuples", number: true },
      { name: "In reorder buffer", number: true }, { name: "Head-of-line wait", number: true }, { name: "Mean of late", number: true }, { name: "Blocks that waited", number: true }, { name: "Chosen", number: true }, { name: "Share", number: true },
    ], "Order by component");
    this.buffer = new Chart({ title: "Reorder buffer: blocks that wait for earlier ones", format: count, group: "order", empty: "No component of this run has a reorder buffer that its runtime tells of." });
    this.head = new Chart({ title: "Head-of-line wait: how long a finished block waits for an earlier one", format: seconds, group: "order", empty: "No block has had to wait for an earlier one." });
    this.waiting = new Chart({ title: "Tuples that wait, by component", format: count, group: "order", empty: "This runtime does not say how many tuples wait for a component." });
    this.latency = new Chart({ title: LATENCY.join(""), format: seconds, group: "order" });
    this.maybe = new Maybe("", this.table.element);
    this.element = section("Order", this.maybe.element,
      el("p", { class: "note" }, "In force: total and key put blocks back into the order of their source, none takes them as they come. The reorder buffer holds blocks of a component's output that wait for earlier ones; chosen is how often workers chose it."),
      el("div", { class: "charts" }, this.buffer.element, this.head.element, this.waiting.element, this.latency.element));
  }

  update(model) {
    const components = (model.now?.components ?? []).filter((each) => each.waiting !== null);
    const chosen = components.reduce((sum, each) => sum + (each.chosen ?? 0), 0);
    const later = model.now === null && (model.topology?.runtime ?? "local") === "local";
    this.maybe.say(later ? UNMEASURED : "Figures of order come from the local runtime.");
    if (this.maybe.show(components.length > 0)) {
      this.table.fill(components.map((each) => [
        toComponent(each.component), orders(model, each.component), each.order, count(each.waiting), count(each.reordering),
        seconds(each.head_wait), seconds(meanWait(model, each.component)), count(each.reordered),
        count(each.chosen), share(chosen ? (each.chosen ?? 0) / chosen : null)]));
    }
    const { looks } = model;
    const at = times(looks);
    const lines = (field) => components.map((each) => ({
      name: each.component, values: series(looks, (s) => component(s, each.component)?.[field] ?? null) }));
    this.buffer.show(at, lines("reordering"));
    this.head.show(at, components.map((each) => ({ name: each.component, values: series(looks, waited(each.component)) })));
    this.waiting.show(at, lines("waiting"));
    this.latency.call(LATENCY.join(span(looks)));
    this.latency.show(at, latencies(looks, ["p50", "p99"]));
  }

  destroy() {
    for (const chart of [this.buffer, this.head, this.waiting, this.latency]) chart.destroy();
  }
}

function orders(model, name) {
  const read = (model.topology?.streams ?? []).filter((each) => each.to === name);
  return [...new Set(read.map((each) => each.order))].join(", ");
}

// Seconds that a block of a component's output waited for earlier ones, mean between two looks; where
// none has come out meanwhile, how long the one at the head has waited.
function waited(name) {
  return (now, before) => {
    const each = component(now, name), then = component(before, name);
    if (!each?.reordered && !each?.head_wait) return null;
    const blocks = each.reordered - (then?.reordered ?? 0);
    const mean = blocks > 0 ? (each.reorder_seconds - (then?.reorder_seconds ?? 0)) / blocks : 0;
    return Math.max(mean, each.head_wait ?? 0);
  };
}

function meanWait(model, name) {
  const each = component(model.now, name), then = component(model.before, name);
  const blocks = (each?.reordered ?? 0) - (then?.reordered ?? 0);
  return blocks > 0 ? (each.reorder_seconds - (then?.reorder_seconds ?? 0)) / blocks : null;
}

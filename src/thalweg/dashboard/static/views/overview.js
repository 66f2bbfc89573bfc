// How the run is as a whole.

import { Buttons } from "../actions.js";
import { Chart } from "../charts.js";
import { el, section, Table, Tile, toComponent } from "../dom.js";
import { clock, count, rate, seconds, share } from "../format.js";
import { busyShare, component, growth, perSecond, series, times } from "../store.js";

const WINDOW = "10 min";

export class Overview {
  constructor() {
    this.tiles = {
      tuples_in: new Tile("tuples_in", "Tuples in"),
      tuples_out: new Tile("tuples_out", "Tuples out"),
      latency: new Tile("latency", "Latency p50"),
      pending: new Tile("pending", "Pending"),
      errors: new Tile("errors", "Errors"),
      elapsed: new Tile("elapsed", "Running for"),
    };
    this.rates = new Chart({ title: "Tuples per second", format: rate });
    this.latency = new Chart({ title: "Latency since the start", format: seconds, empty: "No block has been followed to its end yet." });
    this.buttons = new Buttons();
    this.table = new Table([
      { name: "Component" }, { name: "Role" }, { name: "Tasks", number: true },
      { name: "Received", number: true }, { name: "per second", number: true },
      { name: "Emitted", number: true }, { name: "Busy", number: true },
      { name: "Capacity", number: true }, { name: "Waiting", number: true }, { name: "Errors", number: true },
    ], "Components");
    this.element = el("div", { class: "view", "data-view": "overview" },
      el("div", { class: "tiles" }, ...Object.values(this.tiles).map((tile) => tile.element)),
      el("div", { class: "charts" }, this.rates.element, this.latency.element),
      section("Components", this.table.element,
        this.note = el("p", { class: "note" }, "Busy is time inside components; what Spark itself needs to read, exchange and commit is not in it: see Batches.")),
      section("Actions", this.buttons.element));
  }

  update(model) {
    const now = model.now;
    this.buttons.show(model);
    // On Spark it is measured how long batches take.
    const batches = model.topology?.runtime === "spark";
    this.tiles.latency.call(batches ? "Batch time p50" : "Latency p50");
    this.latency.call(batches ? "Batch time since the start" : "Latency since the start");
    this.note.hidden = !batches;
    if (now) this.showTiles(model, now);
    else this.clearTiles();
    const { looks } = model;
    const at = times(looks);
    this.rates.show(at, [
      { name: "in", values: series(looks, perSecond((s) => s.tuples_in)) },
      { name: "out", values: series(looks, perSecond((s) => s.tuples_out)) },
    ]);
    this.latency.show(at, ["p50", "p95", "p99"].map((name) => (
      { name, values: series(looks, (s) => s.latency?.[name] ?? null) })));
    this.table.fill((now?.components ?? []).map((each) => this.row(model, each)));
  }

  clearTiles() {
    for (const tile of Object.values(this.tiles)) tile.show("–");
    this.tiles.errors.element.classList.remove("bad");
  }

  showTiles(model, now) {
    const { tiles } = this;
    tiles.tuples_in.show(count(now.tuples_in), rate(growth(model, (s) => s.tuples_in)), now.tuples_in);
    tiles.tuples_out.show(count(now.tuples_out), rate(growth(model, (s) => s.tuples_out)), now.tuples_out);
    const { latency } = now;
    tiles.latency.show(seconds(latency?.p50), latency ? `p95 ${seconds(latency.p95)}, p99 ${seconds(latency.p99)}` : "", latency?.p50);
    const acked = now.acked || now.failed ? `${count(now.acked)} acked, ${count(now.failed)} failed` : "tuples that wait";
    tiles.pending.show(count(now.pending), acked, now.pending);
    const dropped = now.components.reduce((sum, each) => sum + each.dropped, 0);
    tiles.errors.show(count(now.errors), dropped ? `${count(dropped)} dropped` : "tuples refused", now.errors);
    tiles.errors.element.classList.toggle("bad", now.errors > 0);
    tiles.elapsed.show(clock(now.elapsed), now.batches ? `${count(now.batches)} batches` : "", now.elapsed);
  }

  row(model, each) {
    const known = model.topology?.components.find((one) => one.name === each.component);
    const name = each.component;
    return [
      toComponent(name),
      known?.kind,
      count(each.degree),
      count(each.received),
      rate(growth(model, (s) => component(s, name)?.[known?.kind === "spout" ? "emitted" : "received"])),
      count(each.emitted),
      share(busyShare(model, name)),
      share(each.stats[WINDOW]?.capacity),
      count(each.waiting),
      { text: count(each.errors), bad: each.errors > 0 },
    ];
  }

  destroy() {
    this.rates.destroy();
    this.latency.destroy();
  }
}

// How the run is as a whole.

import { Buttons } from "../actions.js";
import { Chart } from "../charts.js";
import { el, section, Table, Tile, toComponent } from "../dom.js";
import { clock, count, rate, seconds, share } from "../format.js";
import { lines, span, tell } from "../latency.js";
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
    this.latency = new Chart({ title: "Latency", format: seconds, empty: "No block has been followed to its end yet." });
    this.buttons = new Buttons();
    this.table = new Table([
      { name: "Component" }, { name: "Role" }, { name: "Tasks", number: true },
      { name: "Received", number: true }, { name: "per second", number: true },
      { name: "Emitted", number: true }, { name: "Busy", number: true },
      { name: "Capacity", number: true }, { name: "Waiting", number: true }, { name: "Errors", number: true },
      { name: "Late", number: true }, { name: "Dropped", number: true },
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
    const took = batches ? "Batch time" : "Latency";
    this.latency.call(`${took}${span(model.looks)}`);
    this.note.hidden = !batches;
    if (now) this.showTiles(model, now, took);
    else this.clearTiles(took);
    const { looks } = model;
    const at = times(looks);
    this.rates.show(at, [
      { name: "in", values: series(looks, perSecond((s) => s.tuples_in)) },
      { name: "out", values: series(looks, perSecond((s) => s.tuples_out)) },
    ]);
    this.latency.show(at, lines(looks, ["p50", "p95", "p99"]));
    this.table.fill((now?.components ?? []).map((each) => this.row(model, each)));
  }

  clearTiles(took) {
    this.tiles.latency.call(`${took} p50`);
    for (const tile of Object.values(this.tiles)) tile.show("–");
    this.tiles.errors.element.classList.remove("bad");
  }

  showTiles(model, now, took) {
    const { tiles } = this;
    tiles.tuples_in.show(count(now.tuples_in), rate(growth(model, (s) => s.tuples_in)), now.tuples_in);
    tiles.tuples_out.show(count(now.tuples_out), rate(growth(model, (s) => s.tuples_out)), now.tuples_out);
    tell(tiles.latency, took, model);
    const acked = now.acked || now.failed ? `${count(now.acked)} acked, ${count(now.failed)} failed` : "tuples that wait";
    tiles.pending.show(count(now.pending), acked, now.pending);
    const of = (field) => now.components.reduce((sum, each) => sum + (each[field] ?? 0), 0);
    const lost = ["late", "dropped"].filter((field) => of(field) > 0);
    tiles.errors.show(count(now.errors), lost.map((field) => `${count(of(field))} ${field}`).join(", ") || "tuples refused", now.errors);
    tiles.errors.element.classList.toggle("bad", now.errors > 0 || lost.length > 0);
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
      ...["errors", "late", "dropped"].map((field) => ({ text: count(each[field]), bad: each[field] > 0 })),
    ];
  }

  destroy() {
    this.rates.destroy();
    this.latency.destroy();
  }
}

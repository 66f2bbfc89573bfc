// Batches of a run on Spark: how long their phases took, what went through the exchange, the state.

import { Chart } from "../charts.js";
import { el, Maybe, section, setText, Table, Tile } from "../dom.js";
import { bytes, clock, count, seconds, share } from "../format.js";

const SHOWN = 50;
const COLUMNS = ["Version", "Epoch", "Rows", "Duration", "Job", "Commit", "Deliver", "Attempts", "Exchanged", "Stayed", "Spilled", "Keys moved", "State"];
const sum = (snapshot, field) => snapshot?.components.reduce((total, each) => total + each[field], 0);

export class Batches {
  constructor() {
    this.tiles = {
      batches: new Tile("batches", "Batches committed"),
      shuffled: new Tile("shuffled", "Tuples exchanged"),
      local: new Tile("local", "Tuples that stayed"),
      state_keys: new Tile("state_keys", "Keys in runs of state"),
      commit: new Tile("commit", "Last commit"),
    };
    this.sum = el("p", {});
    const chart = (title, format) => new Chart({ title, format, group: "batches" });
    this.duration = chart("Duration of batches, and of their jobs", seconds);
    this.phases = chart("Checkpoint of a batch (commit), delivery to sinks, and the rest", seconds);
    this.stages = chart("Longest task of each stage", seconds);
    this.rows = chart("Rows of batches", count);
    this.shuffle = chart("Tuples through the exchange, and past it", count);
    this.state = chart("State: a key counts once per run, until runs are merged", bytes);
    this.charts = [this.duration, this.phases, this.stages, this.rows, this.shuffle, this.state];
    this.table = new Table([{ name: "Time" }, ...COLUMNS.map((name) => ({ name, number: true }))], "Batches");
    this.maybe = new Maybe("No batch has been committed yet.",
      el("div", { class: "tiles" }, ...Object.values(this.tiles).map((tile) => tile.element)),
      this.sum,
      el("div", { class: "charts" }, ...this.charts.map((each) => each.element)),
      this.table.element);
    this.element = section("Batches", this.maybe.element);
  }

  update(model) {
    const { batches, now } = model;
    if (!this.maybe.show(batches.length > 0)) return;
    this.showTiles(batches, now);
    const at = batches.map((each) => each.at);
    const line = (name, read) => ({ name, values: batches.map(read) });
    const phase = (name) => line(name, (each) => each.phases[name] ?? null);
    const others = [...new Set(batches.flatMap((each) => Object.keys(each.phases)))].filter((name) => name !== "job");
    const stages = Math.max(...batches.map((each) => each.stages.length));
    this.duration.show(at, [line("all", (each) => each.seconds), phase("job")]);
    this.phases.show(at, others.map(phase));
    this.stages.show(at, Array.from({ length: stages }, (_, stage) => line(`stage ${stage}`, (each) => each.stages[stage] ?? null)));
    this.rows.show(at, [line("rows", (each) => each.rows)]);
    this.shuffle.show(at, [line("exchanged", (each) => each.shuffled), line("stayed", (each) => each.local)]);
    this.state.show(at, [line("state", (each) => each.state_bytes)]);
    this.table.fill(batches.slice(-SHOWN).reverse().map(row));
  }

  // Sums of the run, as the metrics have them.
  showTiles(batches, now) {
    const last = batches.at(-1);
    const { tiles } = this;
    const [shuffled, local, keys] = ["shuffled", "local", "state_keys"].map((field) => sum(now, field));
    const all = shuffled + local;
    tiles.batches.show(count(now?.batches), `epoch ${count(last.epoch)}`, now?.batches);
    tiles.shuffled.show(count(shuffled), bytes(sum(now, "shuffled_bytes")), shuffled);
    tiles.local.show(count(local), `${share(all ? local / all : null)} of all that were sent`, local);
    tiles.state_keys.show(count(keys), bytes(sum(now, "state_bytes")), keys);
    tiles.commit.show(seconds(last.phases.commit), `of ${seconds(last.seconds)}`);
    setText(this.sum, now?.stickiness == null ? "" : `${share(now.stickiness)} of the tasks of the last batch ran where their places are wanted.`);
  }

  destroy() {
    for (const chart of this.charts) chart.destroy();
  }
}

function row(each) {
  const { phases } = each;
  return [
    clock(each.at), count(each.version), count(each.epoch), count(each.rows), seconds(each.seconds),
    seconds(phases.job), seconds(phases.commit), seconds(phases.deliver), count(each.attempts),
    { text: count(each.shuffled), title: bytes(each.shuffled_bytes) }, count(each.local), bytes(each.spilled), count(each.moved_keys),
    { text: bytes(each.state_bytes), title: `${count(each.state_keys)} keys in runs` },
  ];
}

// Which keys are frequent, which occur together, and whether they are at one place.

import { Chart, lineColour, NO_TRAVEL } from "../charts.js";
import { el, keyText, Maybe, scrolling, section, setText, svg, Table, toComponent, UNMEASURED } from "../dom.js";
import { clock, count, number, share, shortened } from "../format.js";
import { component, overSince, parted, series, tasksReceived, times } from "../store.js";

const DRAWN = 12;
const CHOICES = 50;
const ROW = 26, WIDTH = 520;
// Between the middle of a place and the name beside it.
const GAP = 14;
// A share that may be further off than this says little.
const FAR = 0.2;
// Seconds after which counts are not those of now; a run that counts does so more often.
const OLD = 10;
const linkName = (link) => `${link.sender} → ${link.reader}`;

export class Keys {
  constructor() {
    this.chosen = el("select", { id: "link", on: { change: () => this.last && this.update(this.last) } });
    this.about = el("p", {});
    const keyColumns = [{ name: "Key" }, { name: "Tuples", number: true }, { name: "Share", number: true }, { name: "Place", number: true }];
    this.left = new Table(keyColumns, "Frequent keys of the sender");
    this.right = new Table(keyColumns, "Frequent keys of the reader");
    this.pairs = new Table([{ name: "Key of the sender" }, { name: "Key of the reader" }, { name: "Tuples", number: true }, { name: "Share", number: true }, { name: "At one place" }], "Frequent pairs");
    this.graph = new KeyGraph();
    this.locality = new Chart({ title: "Locality measured: share of tuples whose keys are at one place", format: share, top: 1, group: "keys" });
    this.stayed = new Chart({ title: "Tuples that stayed at their place, by sender", format: share, top: 1, group: "keys", empty: NO_TRAVEL });
    this.skew = new Table([{ name: "Component" }, { name: "Tasks", number: true }, { name: "Busiest task", number: true }, { name: "Against the mean", number: true }, { name: "Keys with a place of their own", number: true }], "Skew");
    this.even = new Maybe("", this.skew.element,
      el("p", { class: "note" }, "Of the tuples that came in the last seconds or, when none came or the run has ended, since the degree last changed."));
    this.counted = new Maybe("",
      el("p", {}, el("label", { for: "link" }, "Stream "), this.chosen), this.about,
      el("div", { class: "charts" }, this.locality.element, this.graph.element),
      el("div", { class: "beside" }, section("Keys of the sender", this.left.element), section("Keys of the reader", this.right.element)),
      section("Pairs", this.pairs.element));
    this.moves = new Moves();
    this.element = el("div", { class: "view", "data-view": "keys" },
      section("Keys that occur together", this.counted.element),
      section("What a reconfiguration has changed", this.moves.element),
      section("Skew", this.even.element),
      el("div", { class: "charts" }, this.stayed.element));
  }

  update(model) {
    this.last = model;
    const last = model.keys.at(-1);
    if (this.counted.show(Boolean(last?.links.length))) this.showLinks(model, last);
    this.counted.say(uncounted(model));
    this.showSkew(model, last);
    this.moves.update(model);
    const { looks } = model;
    const senders = (model.now?.components ?? []).filter((each) => each.local + each.shuffled > 0);
    this.stayed.show(times(looks), senders.map((sender) => ({
      name: sender.component,
      values: series(looks, (s) => stayed(s.components.find((each) => each.component === sender.component))),
    })));
  }

  showLinks(model, last) {
    const names = last.links.map(linkName);
    if (JSON.stringify(names) !== this.names) {
      this.names = JSON.stringify(names);
      this.chosen.replaceChildren(...names.map((name, at) => el("option", { value: at }, name)));
    }
    const link = last.links[Number(this.chosen.value)] ?? last.links[0];
    const predicted = model.others.findLast((each) => each.kind === "reconfigured" && each.report.predicted);
    const parts = [
      `${share(link.locality)} of ${count(link.total)} tuples counted have both keys at one place`,
      ...apart(link),
      `of the tuples counted, a count may be up to ${count(link.lost)} too low`,
      `one of ${number(1 / last.sampling, 0)} tuples is counted`,
    ];
    if (predicted) parts.push(`the last reconfiguration predicted ${share(predicted.report.predicted.locality)}`);
    if (model.moment - last.at > OLD) parts.push([`counted until ${clock(last.at)}`, parted(model)].filter(Boolean).join(": "));
    setText(this.about, `${parts.join("; ")}.`);
    const keyRow = (key) => [{ text: keyText(key.key), pre: true }, count(key.count), share(key.count / link.total), String(key.place)];
    this.left.fill(link.left.map(keyRow));
    this.right.fill(link.right.map(keyRow));
    this.pairs.fill(link.pairs.map((pair) => [
      { text: keyText(pair.left), pre: true }, { text: keyText(pair.right), pre: true },
      count(pair.count), share(pair.count / link.total), pair.local ? "yes" : "no"]));
    this.graph.show(link);
    this.locality.show(model.keys.map((each) => each.at), names.map((name) => ({
      name,
      values: model.keys.map((each) => each.links.find((one) => linkName(one) === name)?.locality ?? null),
    })));
  }

  showSkew(model, last) {
    const rows = (model.now?.components ?? []).map((each) => skewRow(model, each.component, last)).filter(Boolean);
    this.even.say(model.now ? "No component has several tasks that took in tuples." : UNMEASURED);
    if (this.even.show(rows.length > 0)) this.skew.fill(rows);
  }

  destroy() {
    this.locality.destroy();
    this.stayed.destroy();
  }
}

// Why there are no counts of keys.
function uncounted({ now, topology, learns, state }) {
  if (now === null || learns || state.actions.includes("reroute")) return UNMEASURED;
  if (topology?.runtime === "inline") return "On inline, keys are counted where a rerouter is given: tw.Inline(rerouter=...).";
  return "Frequent keys and pairs are counted in runs that learn which keys occur together: thalweg run --locality auto (or ask).";
}

// What shares of the tuples counted say of all tuples; older recordings do not know.
function apart(link) {
  if (!link.share_error) return [];
  if (link.share_error > FAR) return ["these are too few to say how frequent keys are among all tuples"];
  return [`among all tuples a share may be up to ${Math.ceil(100 * link.share_error)} points higher or lower, 19 times of 20`];
}

function skewRow(model, name, last) {
  const tasks = tasksReceived(model, name);
  const total = tasks.reduce((sum, one) => sum + one, 0);
  if (tasks.length < 2 || total === 0) return null;
  const most = Math.max(...tasks);
  return [toComponent(name), count(component(model.now, name).degree), `task ${tasks.indexOf(most)}: ${count(most)}`,
    `${number(most * tasks.length / total)} ×`, count(last?.listed?.[name])];
}

// Which keys have another place since a reconfiguration: the difference of the routing tables.
class Moves {
  constructor() {
    this.chosen = el("select", { id: "reconfiguration", on: { change: () => this.last && this.update(this.last) } });
    this.about = el("p", {});
    this.table = new Table([{ name: "Component" }, { name: "Key" }, { name: "From place", number: true }, { name: "To place", number: true }, { name: "Tuples counted", number: true }], "Keys that have another place");
    this.table.element.classList.add("tall");
    this.maybe = new Maybe("No routing table has changed so far. Keys get other places when that pays, in runs with --locality, and when the degree of a keyed component changes.",
      el("p", {}, el("label", { for: "reconfiguration" }, "Reconfiguration "), this.chosen), this.about, this.table.element);
    this.element = this.maybe.element;
    this.names = "";
  }

  update(model) {
    this.last = model;
    const made = model.others.filter((each) => each.kind === "reconfigured" && each.difference).slice(-CHOICES).reverse();
    if (!this.maybe.show(made.length > 0)) return;
    const names = JSON.stringify(made.map((each) => each.n));
    if (names !== this.names) this.offer(made, names);
    const { difference } = made.find((each) => String(each.n) === this.chosen.value) ?? made[0];
    const rest = difference.moves.length < difference.keys ? `; the ${count(difference.moves.length)} that were counted most often are listed` : "";
    setText(this.about, `${count(difference.keys)} keys with state and ${count(difference.groups)} key groups have another place${rest}.`);
    this.table.element.hidden = difference.moves.length === 0;
    this.table.fill(difference.moves.map((move) => [
      toComponent(move.component), { text: keyText(move.key), pre: true }, String(move.before), String(move.after), move.count ? count(move.count) : null]));
  }

  // The newest is shown until somebody chooses another.
  offer(made, names) {
    const before = this.chosen.value, first = JSON.parse(this.names || "[]")[0];
    this.names = names;
    this.chosen.replaceChildren(...made.map((each) => el("option", { value: each.n }, `${clock(overSince(each))}, epoch ${each.report.epoch}`)));
    if (before !== "" && before !== String(first) && made.some((each) => String(each.n) === before)) this.chosen.value = before;
  }
}

function stayed(each) {
  const all = each ? each.local + each.shuffled : 0;
  return all ? each.local / all : null;
}

// Keys of the sender on the left, of the reader on the right; a broken line is a pair that is cut.
class KeyGraph {
  constructor() {
    this.place = scrolling("Key graph");
    this.element = el("figure", { class: "chart" },
      el("figcaption", {}, "Key graph: numbers are places, broken lines are pairs at two places"), this.place);
  }

  show(link) {
    const left = link.left.slice(0, DRAWN), right = link.right.slice(0, DRAWN);
    // As wide as there is room; names have a third on each side.
    const width = Math.max(260, Math.min(WIDTH, this.place.clientWidth || WIDTH)), side = Math.round(0.36 * width);
    const height = ROW * Math.max(left.length, right.length, 1) + 10;
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "key-graph" });
    const rows = (keys) => new Map(keys.map((key, at) => [key.key, ROW * at + ROW / 2 + 5]));
    const leftRows = rows(left), rightRows = rows(right);
    const most = Math.max(1, ...link.pairs.map((pair) => pair.count));
    for (const pair of link.pairs) {
      const from = leftRows.get(pair.left), to = rightRows.get(pair.right);
      if (from === undefined || to === undefined) continue;
      picture.append(svg("path", {
        d: `M ${side} ${from} C ${width / 2} ${from}, ${width / 2} ${to}, ${width - side} ${to}`,
        class: pair.local ? "pair" : "pair cut",
        "stroke-width": 1 + 4 * pair.count / most,
      }, svg("title", {}, `${keyText(pair.left)}, ${keyText(pair.right)}: ${count(pair.count)}`)));
    }
    const labels = new Map();
    left.forEach((key) => picture.append(...node(key, side, leftRows.get(key.key), "end", labels)));
    right.forEach((key) => picture.append(...node(key, width - side, rightRows.get(key.key), "start", labels)));
    this.place.replaceChildren(picture);
    labels.forEach((name, label) => fit(label, name, side - GAP - 2));
  }
}

// Cut a name in the middle until it is no wider than its room: letters differ in width.
function fit(label, name, room) {
  const fits = (most) => {
    label.textContent = shortened(name, most);
    return label.getComputedTextLength() <= room;
  };
  let least = 1, most = Math.ceil(room); // no letter is narrower than a point
  if (fits(most)) return;
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (fits(middle)) least = middle;
    else most = middle - 1;
  }
  fits(least);
}

// There are more places than colours.
function node(key, x, y, anchor, labels) {
  const name = keyText(key.key);
  const label = svg("text", { x: anchor === "end" ? x - GAP : x + GAP, y: y + 4, "text-anchor": anchor });
  labels.set(label, name);
  const title = svg("title", {}, `${name}: place ${key.place}`);
  return [
    svg("circle", { cx: x, cy: y, r: 9, fill: lineColour(key.place) }, title),
    svg("text", { x, y: y + 4, class: "at" }, String(key.place)),
    label,
  ];
}

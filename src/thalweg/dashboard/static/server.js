// All topologies of a server at a glance; each has a page of its own.

import { Chart } from "./charts.js";
import { el, Maybe, section, setText, Table } from "./dom.js";
import { byId, Following, get, skips, trying } from "./following.js";
import { clock, count, rate, seconds } from "./format.js";

// Looks that are kept, and seconds that rates are over at least.
const MOST_LOOKS = 600;
const RATE_SECONDS = 2;
const AGAIN = 2000;

const page = { run: "", last: 0, looks: [], connected: null, why: "" };
const view = {
  rates: new Chart({ title: "Tuples per second from sources", format: rate, empty: "Too few looks so far." }),
  table: new Table([
    { name: "Topology" }, { name: "State" }, { name: "Up", number: true },
    { name: "In", number: true }, { name: "per second", number: true },
    { name: "Out", number: true }, { name: "per second", number: true },
    { name: "p50", number: true }, { name: "p95", number: true }, { name: "p99", number: true },
    { name: "Pending", number: true }, { name: "Errors", number: true }, { name: "Deaths", number: true },
    { name: "Policy" }, { name: "Last error" },
  ], "Topologies"),
};
view.some = new Maybe("The server runs nothing: thalweg server submit FILE.", view.table.element);

function add(look) {
  if (look.n <= page.last) return;
  page.last = look.n;
  page.looks.push(look);
  if (page.looks.length > MOST_LOOKS) page.looks.splice(0, MOST_LOOKS / 10);
}

const known = (look, name) => look.topologies.find((each) => each.name === name);

// The growth of a count per second, up to a look; null where a process has begun in between.
function growth(at, name, read) {
  const now = known(page.looks[at], name);
  if (now?.elapsed === undefined) return null;
  for (let before = at - 1; before >= 0; before -= 1) {
    const then = known(page.looks[before], name);
    if (then?.elapsed === undefined || then.elapsed > now.elapsed) return null;
    const span = now.elapsed - then.elapsed;
    if (span >= RATE_SECONDS) return Math.max(0, read(now) - read(then)) / span;
    // One that is silent or over does not go on.
    if (page.looks[at].at - page.looks[before].at > 5 * RATE_SECONDS) return 0;
  }
  return null;
}

function row(at, each, wall) {
  const of = (read) => rate(growth(at, each.name, read));
  // A server of before says no more than that since the start.
  const latency = each.recent === undefined ? each.latency : each.recent;
  return [
    { text: each.name, href: `/topologies/${encodeURIComponent(each.name)}/` },
    { text: each.state, bad: each.state === "failed" || each.state.startsWith("silent") },
    each.since === null ? null : clock(wall - each.since),
    count(each.tuples_in), of((one) => one.tuples_in),
    count(each.tuples_out), of((one) => one.tuples_out),
    seconds(latency?.p50), seconds(latency?.p95), seconds(latency?.p99),
    count(each.pending), { text: count(each.errors), bad: each.errors > 0 },
    { text: count(each.deaths), bad: each.deaths > 0 },
    each.policy || null,
    { text: each.error || null, pre: true },
  ];
}

function draw() {
  const at = page.looks.findLastIndex((look) => look.error === "");
  const newest = page.looks.at(-1);
  const unconnected = page.why ? `not connected: ${page.why}` : "not connected";
  const state = page.connected === false ? unconnected : newest?.error ? "the server does not answer" : "running";
  setText(byId("state"), state);
  byId("state").className = `badge ${state === "running" ? "running" : "failed"}`;
  byId("state").title = newest?.error ?? "";
  if (at < 0) return;
  const look = page.looks[at];
  if (view.some.show(look.topologies.length > 0)) {
    view.table.fill(look.topologies.map((each) => row(at, each, look.wall)));
  }
  const names = look.topologies.map((each) => each.name);
  view.rates.show(page.looks.map((each) => each.at), names.map((name) => ({
    name, values: page.looks.map((_, index) => growth(index, name, (one) => one.tuples_in)),
  })));
  document.body.dataset.drawn = String(page.last);
}

async function take() {
  for (const look of await get(`api/records?after=${page.last}`)) add(look);
  draw();
}

const following = new Following({
  address: () => `api/stream?after=${page.last}&run=${page.run}`,
  take,
  add: (look) => { add(look); draw(); },
  changed: (connected, why) => { Object.assign(page, { connected, why }); draw(); },
  ended: () => setTimeout(() => trying(begin), AGAIN),
});

async function begin() {
  page.run = (await get("api/state")).run;
  Object.assign(page, { last: 0, looks: [] });
  await take();
  following.start();
}

byId("main").append(el("div", { class: "view", "data-view": "topologies" },
  el("div", { class: "charts one" }, view.rates.element),
  section("Topologies", view.some.element)));
skips();
trying(begin);

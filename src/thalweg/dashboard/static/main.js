// Begins: gets the records, shows the view that the address names, and keeps it up to date.

import { el, setText } from "./dom.js";
import { byId, Following, get, skips, trying } from "./following.js";
import { clock, wallTime } from "./format.js";
import { Store } from "./store.js";
import { Overview } from "./views/overview.js";
import { Graph } from "./views/graph.js";
import { Component } from "./views/component.js";
import { Keys } from "./views/keys.js";
import { Reconfigurations } from "./views/reconfigurations.js";
import { Scaling } from "./views/scaling.js";
import { Order } from "./views/order.js";
import { Logs } from "./views/logs.js";

const VIEWS = [
  ["overview", "Overview", Overview],
  ["graph", "Graph", Graph],
  ["keys", "Keys", Keys],
  ["reconfigurations", "Reconfigurations", Reconfigurations],
  ["scaling", "Scaling", Scaling],
  ["order", "Order", Order],
  ["logs", "Logs", Logs],
];
// Milliseconds between two times that the page is drawn anew.
const DRAW_EVERY = 400;
// Milliseconds before the page looks whether a topology that has ended runs again.
const AGAIN = 1000;

const page = {
  store: new Store(),
  // Whether it is a run or a recording is not known at first.
  state: { live: null, actions: [], bolts: [], policies: [], known: false },
  picture: null,
  view: null,
  // Seconds since the start that are shown; null for the newest.
  moment: null,
  // Null as long as it was not tried.
  connected: null,
  // Why not.
  why: "",
  // Name of the view that is shown; its heading, where the view has none of its own.
  label: "",
  heading: null,
  due: false,
  drawn: 0,
};

function soon() {
  if (page.due) return;
  page.due = true;
  const wait = Math.max(0, DRAW_EVERY - (performance.now() - page.drawn));
  setTimeout(() => requestAnimationFrame(draw), wait);
}

function draw() {
  page.due = false;
  page.drawn = performance.now();
  const moment = page.moment ?? page.store.end;
  const model = { ...page.store.at(moment), state: page.state, picture: page.picture, connected: page.connected };
  drawFrame(model);
  page.view?.update(model);
  document.body.dataset.drawn = String(page.store.last);
  document.body.dataset.run = page.state.run ?? "";
}

function drawFrame(model) {
  const { topology } = model;
  const name = page.state.served || topology?.name;
  setText(byId("name"), name ?? (page.state.live === null ? "" : "waiting for a run"));
  const policy = model.policy ? `, policy ${model.policy}` : "";
  const own = topology && topology.name !== name ? `${topology.name} ` : "";
  setText(byId("runtime"), topology ? `${own}on ${topology.runtime}${policy}` : "");
  nameView(topology, name);
  const badge = byId("state");
  const state = stateOf(model);
  setText(badge, state === "not connected" && page.why ? `${state}: ${page.why}` : state);
  const { failure } = model;
  byId("failure").hidden = failure === null;
  setText(byId("failure"), failure === null ? "" : `The run failed${failure.component ? ` in ${failure.component}` : ""}: ${failure.text}`);
  badge.className = `badge ${state.replaceAll(" ", "-")}`;
  const slider = byId("slider");
  const end = Math.ceil(10 * page.store.end);
  slider.max = String(end);
  if (page.moment === null) slider.value = String(end);
  slider.setAttribute("aria-valuetext", clock(model.moment));
  const wall = (topology?.wall ?? 0) + model.moment;
  setText(byId("moment"), `${clock(model.moment)} of ${clock(page.store.end)}`);
  byId("moment").title = topology ? wallTime(wall) : "";
  byId("follow").disabled = page.moment === null;
}

// The words for the view: in the navigation, the title of the window, and for those who hear the page.
function nameView(topology, name) {
  const order = byId("nav").querySelector("[data-view='order']");
  setText(order, topology?.runtime === "spark" ? "Batches" : "Order");
  const label = page.label === "Order" ? order.textContent : page.label;
  if (page.heading) setText(page.heading, label);
  document.title = [label, name, "Thalweg"].filter(Boolean).join(" – ");
}

function stateOf(model) {
  if (page.moment !== null) return model.paused ? "was paused" : "looking back";
  if (model.finished?.kind === "run_failed") return "failed";
  if (model.finished) return model.finished.stopped ? "stopped" : "ended";
  if (page.why) return "not connected";
  if (page.state.live === false) return model.paused ? "paused" : "recording";
  if (page.connected === null) return "loading";
  if (!page.connected) return "not connected";
  if (model.paused) return "paused";
  return model.started ? "running" : "starting";
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function show() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const argument = decoded(rest.join("/"));
  const found = VIEWS.find(([id]) => id === name) ?? VIEWS[0];
  page.view?.destroy?.();
  page.view = name === "component" ? new Component(argument) : new found[2]();
  page.label = name === "component" ? argument : found[1];
  page.heading = name === "component" ? null : el("h2", { class: "hidden", tabindex: "-1" }, page.label);
  const current = name === "component" ? "graph" : found[0];
  for (const link of byId("nav").children) {
    if (link.dataset.view === current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  byId("main").replaceChildren(...[page.heading, page.view.element].filter(Boolean));
  draw();
}

// Another view: what had the focus is gone, so its heading has it.
function turn() {
  show();
  const heading = page.heading ?? byId("main").querySelector("h2");
  heading.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

// Gets what there was when this visitor was told what it can do, in as many answers as that needs. What
// comes meanwhile is left to the stream: on a slow way there would always be something new.
async function take() {
  let records;
  do {
    records = await get(`api/records?after=${page.store.last}`);
    for (const record of records) await add(record);
    soon();
  } while (records.length > 0 && page.store.last < page.state.newest);
}

async function add(record) {
  page.store.add(record);
  if (record.kind !== "topology") return;
  page.moment = null;  // another run begins, which has no such moment yet
  page.picture = (await get("api/topology")).picture;
}

const following = new Following({
  address: () => `api/stream?after=${page.store.last}&run=${page.state.run}`,
  take,
  add: async (record) => { await add(record); soon(); },
  changed: (connected, why) => { Object.assign(page, { connected, why }); soon(); },
  // A server starts what has died again; elsewhere somebody may have started another run.
  ended: (other) => { if (other || page.state.served) setTimeout(again, AGAIN); },
});

// Shows what runs now under the same name, or at the same address.
async function again() {
  try {
    page.state = await get("api/state");
    page.store = new Store();
    page.moment = null;
    await take();
    following.start();
  } catch {
    setTimeout(again, 2 * AGAIN);
  }
}

function frame() {
  for (const [id, label] of VIEWS) {
    byId("nav").append(el("a", { href: `#/${id}`, "data-view": id }, label));
  }
  byId("slider").addEventListener("input", (event) => {
    const { value, max } = event.target;
    page.moment = Number(value) >= Number(max) ? null : Number(value) / 10;
    soon();
  });
  byId("follow").addEventListener("click", () => { page.moment = null; soon(); });
  skips();
  window.addEventListener("hashchange", turn);
  // Charts have their colours from the style sheet.
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
}

async function begin() {
  page.state = await get("api/state");
  if (page.state.served) {
    byId("all").href = "/";
    byId("all").hidden = false;
  }
  await take();
  draw();
  following.start();
}

frame();
show();
trying(begin);

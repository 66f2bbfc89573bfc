// The topology as it was written, and beside it where its tasks are.

import { el, Maybe, scrolling, section, setText, svg } from "../dom.js";
import { rate, share, short, shortened } from "../format.js";
import { component, growth, MANY_TASKS, shares, tasksReceived } from "../store.js";

const WINDOW = "10 min";
// Boxes can still be read at this size.
const SMALLEST = 0.8;

function level(value) {
  return value === null || value === undefined ? "load-none" : `load-${Math.min(9, Math.floor(10 * value))}`;
}

// Short enough for a box.
function whole(value) {
  return share(value === null ? null : Math.round(100 * value) / 100).replace(/\.0 /, " ");
}

function path(points) {
  const [first, ...rest] = points;
  let made = `M ${first[0]} ${first[1]}`;
  rest.forEach(([x, y], at) => {
    if (at % 2 === 0) made += ` L ${x} ${y}`;
    else {
      const [px, py] = rest[at - 1];
      const middle = (py + y) / 2;
      made += ` C ${px} ${middle}, ${x} ${middle}, ${x} ${y}`;
    }
  });
  return made;
}

class Box {
  constructor(known, [x, y, width, height]) {
    this.known = known;
    this.busy = svg("rect", { class: "busy", x: x + 12, y: y + height - 14, width: 0, height: 6, rx: 3 });
    this.pressed = svg("rect", { class: "pressed", x: x + 12, y: y + height - 14, width: 0, height: 6 });
    this.full = width - 24;
    this.left = x + 12;
    [this.about, this.rates, this.shares, this.held] = [40, 58, 76, 94].map((down) => svg("text", { class: "about", x: x + 12, y: y + down }));
    this.title = svg("title");
    this.element = svg("a", { href: `#/component/${encodeURIComponent(known.name)}`, class: `box ${known.kind}` },
      this.title,
      svg("rect", { class: "frame", x, y, width, height, rx: 8 }),
      svg("text", { class: "name", x: x + 12, y: y + 22 }, shortened(known.name, 22)),
      this.about, this.rates, this.shares, this.held,
      svg("rect", { class: "track", x: x + 12, y: y + height - 14, width: this.full, height: 6, rx: 3 }),
      this.pressed, this.busy);
  }

  show(model) {
    const { name, kind } = this.known;
    const now = component(model.now, name);
    const degree = now?.degree ?? this.known.degree;
    const { busy, pressed, waiting: idle } = shares(model, name);
    const capacity = now?.stats[WINDOW]?.capacity;
    const flow = growth(model, (s) => component(s, name)?.[kind === "spout" ? "emitted" : "received"]);
    const waiting = now?.waiting ? `, ${short(now.waiting)} wait` : "";
    setText(this.about, `${kind}, ${degree} ${degree === 1 ? "task" : "tasks"}${waiting}`);
    setText(this.rates, `${rate(flow)}${capacity == null ? "" : `, capacity ${whole(capacity)}`}`);
    setText(this.shares, `busy ${whole(busy)}${pressed === null ? "" : `, waiting ${whole(idle)}`}`);
    setText(this.held, pressed === null ? "" : `back-pressured ${whole(pressed)}`);
    const rest = pressed === null ? "" : `, waiting ${share(idle)}, back-pressured ${share(pressed)}`;
    setText(this.title, `${name}: busy ${share(busy)}${rest}, capacity ${share(capacity)}`);
    this.busy.setAttribute("width", String(this.full * (busy ?? 0)));
    this.pressed.setAttribute("x", String(this.left + this.full * (busy ?? 0)));
    this.pressed.setAttribute("width", String(this.full * (pressed ?? 0)));
    this.busy.setAttribute("class", `busy ${level(busy)}`);
  }
}

export class Graph {
  constructor() {
    this.picture = null;
    this.boxes = [];
    this.arrows = [];
    this.drawing = scrolling("Graph of components");
    this.watching = new ResizeObserver(() => this.fit());
    this.watching.observe(this.drawing);
    this.maybe = new Maybe("The graph appears when the run begins.", this.drawing);
    this.places = new Places();
    this.element = el("div", { class: "view beside", "data-view": "graph" },
      section("Components and streams", this.maybe.element,
        this.told = el("p", { class: "note" }, "The bar of a box is its tasks' time in the last seconds, or over the whole run when it has ended: at work, then ",
          el("span", { class: "key-pressed" }, "back-pressured"), ", which is held up because too much waits behind it, then waiting for tuples or for a worker. Choose a box for its tasks."),
        this.untold = el("p", { class: "note" }, "The bar of a box is the share of its tasks' time that they were at work in the last seconds, or over the whole run when it has ended. Only time inside components counts as work, not what the runtime does between them. On this runtime nothing is back-pressured: no component waits for room in a queue. Choose a box for its tasks.")),
      section("Tasks by place", this.places.element));
  }

  update(model) {
    if (!this.maybe.show(model.picture !== null && model.topology !== null)) return;
    if (this.picture !== model.picture) this.draw(model);
    for (const box of this.boxes) box.show(model);
    this.untold.hidden = !(this.told.hidden = (model.now?.components ?? []).some((each) => each.blocked == null));
    for (const arrow of this.arrows) setText(arrow.text, streamRate(model, arrow.stream));
    this.places.update(model);
  }

  draw(model) {
    this.picture = model.picture;
    const { width, height, boxes, routes } = model.picture;
    const { components, streams } = model.topology;
    const head = svg("marker", { id: "head", viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 8, markerHeight: 8, orient: "auto" },
      svg("path", { d: "M 0 0 L 10 5 L 0 10 z", class: "head" }));
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, class: "graph" }, svg("defs", {}, head));
    this.arrows = routes.map((route) => {
      const stream = streams[route.stream];
      const [x, y] = route.label;
      const text = svg("text", { class: "label", x, y: y + 26 });
      const named = stream.stream === "default" ? "" : `${stream.stream}, `;
      picture.append(svg("path", { d: path(route.points), class: "edge", "marker-end": "url(#head)" }),
        svg("text", { class: "label", x, y: y + 12 }, shortened(`${named}${stream.grouping}`, 26)), text);
      return { stream, text };
    });
    this.boxes = components.filter((each) => boxes[each.name]).map((each) => new Box(each, boxes[each.name]));
    picture.append(...this.boxes.map((box) => box.element));
    this.drawing.replaceChildren(picture);
    this.shown = picture;
    this.fit();
  }

  // A picture that is wider than half of the page has all of it, and shrinks as far as it can be read.
  fit() {
    if (!this.picture || !this.element.isConnected) return;
    const { width, height } = this.picture;
    const half = (this.element.clientWidth - 100) / 2;
    this.element.classList.toggle("wide", width > half);
    const scale = Math.max(SMALLEST, Math.min(1, this.drawing.clientWidth / width));
    if (scale === this.scale) return;
    this.scale = scale;
    this.shown.setAttribute("width", String(scale * width));
    this.shown.setAttribute("height", String(scale * height));
    this.drawing.scrollLeft = (this.drawing.scrollWidth - this.drawing.clientWidth) / 2;
  }

  destroy() {
    this.watching.disconnect();
  }
}

// A stream's rate, where it is the only one that its reader reads, or that its sender sends; nobody
// counts tuples by stream, so there is nothing to say of others.
function streamRate(model, stream) {
  const { streams, components } = model.topology;
  const read = streams.filter((each) => each.to === stream.to).length;
  const sender = components.find((each) => each.name === stream.from);
  if (read === 1) return rate(growth(model, (s) => component(s, stream.to)?.received));
  if (Object.keys(sender?.fields ?? {}).length === 1) {
    return rate(growth(model, (s) => component(s, stream.from)?.emitted));
  }
  return "";
}

// One row per component, one column per place: how much each task had to do.
class Places {
  constructor() {
    this.table = el("table", { class: "places" });
    this.untold = el("p", { class: "note" }, `The run has more than ${MANY_TASKS} tasks: how busy each was is kept only for the newest look.`);
    this.element = el("div", {},
      scrolling("Tasks by place", this.table),
      el("p", { class: "note" }, "The k-th task of a component is at the k-th place. Figures are shares of the tuples that the component took in during the last seconds or, when none came or the run has ended, since its degree last changed; a box in a stronger colour is a task that was busier in the last ten minutes."),
      this.untold);
    this.shape = "";
  }

  update(model) {
    const components = model.now?.components ?? [];
    const tasks = components.map((each) => tasksReceived(model, each.component));
    const shape = JSON.stringify(components.map((each, row) => [each.component, tasks[row].length]));
    if (shape !== this.shape) this.draw(components, Math.max(1, ...tasks.map((each) => each.length)), shape);
    this.untold.hidden = !model.now?.slim;
    components.forEach((each, row) => {
      const total = tasks[row].reduce((sum, one) => sum + one, 0);
      tasks[row].forEach((received, task) => {
        const cell = this.table.tBodies[0].rows[row].cells[task + 1];
        const busy = each.task_stats[task]?.[WINDOW]?.capacity;
        setText(cell, total ? share(received / total) : "·");
        cell.className = `task ${level(busy ?? (total ? 0 : null))}`;
        cell.title = `${each.component}, task ${task}: ${received.toLocaleString("en-US")} tuples, capacity ${share(busy)}`;
      });
    });
  }

  draw(components, most, shape) {
    this.shape = shape;
    const heads = Array.from({ length: most }, (_, at) => el("th", { scope: "col" }, `place ${at}`));
    const rows = components.map((each) => el("tr", {},
      el("th", { scope: "row" }, el("span", {}, each.component)),
      ...Array.from({ length: most }, () => el("td", {}))));
    this.table.replaceChildren(el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Component"), ...heads)), el("tbody", {}, ...rows));
  }
}

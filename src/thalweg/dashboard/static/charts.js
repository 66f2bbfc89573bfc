// Lines over time, drawn by uPlot; all charts of a view share one cursor and one time axis.

import { el, setText, UNMEASURED } from "./dom.js";
import { axisTexts, clock, shortened } from "./format.js";

const HEIGHT = 170;
// Of the share of tuples that stay at their place.
export const NO_TRAVEL = "Whether tuples stay at their place or go to another is counted on Spark; nothing was counted in this run so far.";
const FEW = "Too few looks at the run so far.";
export const COLOURS = 8;
// Letters of a name in the legend.
const LETTERS = 24;
// Seconds between two marks of the time axis.
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function lineColour(at) {
  return colour(`--line-${Math.abs(at) % COLOURS}`);
}

export class Chart {
  // options: title, format (of values), stepped, group (whose cursors move together), top (of the axis),
  // gaps (where nothing was measured; without it lines go on across)
  constructor(options) {
    this.options = options;
    this.plot = null;
    this.names = null;
    this.note = el("p", { class: "note" }, FEW);
    this.place = el("div", { class: "plot" });
    this.caption = el("figcaption", {}, options.title);
    this.element = el("figure", { class: "chart" }, this.caption, this.note, this.place);
    this.data = null;
    this.watching = new ResizeObserver(() => this.resize());
    this.watching.observe(this.place);
  }

  call(title) {
    this.options.title = title;
  }

  // lines: [{name, values, colour, chosen}], all as long as the times; a colour is a number or a name of the style
  // sheet; one that is chosen is shown however many there are
  show(times, lines) {
    const all = lines.filter((line) => line.values.some((value) => value !== null && value !== undefined));
    const known = highest(all);
    setText(this.caption, `${this.options.title}${leftOut(all, known)}`);
    const there = times.length > 1 && known.length > 0;
    this.note.hidden = there;
    this.place.hidden = !there;
    if (!there) {
      const few = times.length < 2 || known.length > 0;
      setText(this.note, few ? FEW : this.options.empty ?? UNMEASURED);
      return;
    }
    this.data = [times, ...known.map((line) => line.values)];
    const names = JSON.stringify(known.map((line) => line.name));
    if (this.plot === null || names !== this.names) this.make(known, names);
    else this.plot.setData(this.data);
    // Without a cursor the legend has the last values.
    if (this.plot.cursor.idx == null) this.plot.setLegend({ idx: times.length - 1 }, false);
    this.describe(known);
  }

  // What somebody hears who cannot see the lines.
  describe(lines) {
    const { format, title } = this.options;
    const last = lines.map((line) => `${line.name} ${format(line.values.findLast((v) => v != null))}`);
    this.place.setAttribute("role", "img");
    this.place.setAttribute("aria-label", `${title}: now ${last.join(", ")}`);
  }

  make(lines, names) {
    this.plot?.destroy();
    this.names = names;
    const { format, stepped, group, top, gaps } = this.options;
    const width = Math.max(200, this.place.clientWidth);
    const grid = { stroke: colour("--grid"), width: 1 };
    const axis = { stroke: colour("--muted"), grid, ticks: grid, font: "11px system-ui, sans-serif" };
    const paths = stepped ? window.uPlot.paths.stepped({ align: 1 }) : undefined;
    const shown = lines.map((line, at) => ({
      label: shortened(line.name, LETTERS),
      stroke: typeof line.colour === "string" ? colour(line.colour) : lineColour(line.colour ?? at),
      width: 2,
      spanGaps: !gaps,
      points: { show: false },
      paths,
      value: (_, value) => format(value),
    }));
    this.plot = new window.uPlot({
      width,
      height: HEIGHT,
      cursor: { sync: { key: group ?? "all" }, y: false, drag: { x: false, y: false } },
      legend: { live: true },
      scales: { x: { time: false }, y: { range: (_, low, high) => axisRange(low, high, top) } },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map(clock), space: 70, incrs: STEPS },
        { ...axis, values: (_, ticks) => axisTexts(format, ticks), size: 72 },
      ],
      hooks: { ready: [(plot) => plot.setLegend({ idx: this.data[0].length - 1 }, false)] },
      series: [{ label: "time", value: (_, value) => clock(value) }, ...shown],
    }, this.data, this.place);
    const [, ...labels] = this.plot.root.querySelectorAll(".u-label");  // behind that of the time
    labels.forEach((label, at) => label.setAttribute("title", lines[at].name));
  }

  resize() {
    const width = this.place.clientWidth;
    if (this.plot !== null && width > 0 && Math.abs(this.plot.width - width) > 1) {
      this.plot.setSize({ width, height: HEIGHT });
    }
  }

  destroy() {
    this.watching.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }
}

// No more lines than there are colours.
function highest(lines) {
  if (lines.length <= COLOURS) return lines;
  const top = (line) => (line.chosen ? Infinity : line.values.reduce((most, value) => Math.max(most, value ?? 0), 0));
  const chosen = new Set([...lines].sort((a, b) => top(b) - top(a)).slice(0, COLOURS));
  return lines.filter((line) => chosen.has(line));
}

function leftOut(all, known) {
  if (all.length === known.length) return "";
  const few = known.filter((line) => !line.chosen).length;
  return few < known.length ? `: the chosen one and the ${few} highest others of ${all.length}` : `: the ${few} highest of ${all.length}`;
}

function axisRange(low, high, top) {
  const most = Math.max(high ?? 0, top ?? 0);
  return [Math.min(0, low ?? 0), most > 0 ? most * 1.08 : 1];
}

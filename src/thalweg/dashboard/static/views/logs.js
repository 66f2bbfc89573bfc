// What was said, and what was refused and how often, with the tuple that did it last.

import { el, Maybe, section, setText, Table } from "../dom.js";
import { clock, count } from "../format.js";
import { gathered, isWish, leftOut, overSince } from "../store.js";

const SHOWN = 300;
const LEVELS = ["trace", "debug", "info", "warning", "error"];

const KINDS = {
  tuple_refused: "refused",
  record_refused: "refused",
  noticed: "notice",
  reconfigured: "reconfiguration",
  decided: "decision",
  child_said: "child",
  activated: "sources",
  run_failed: "failure",
};
// What policies only wished; looks repeat it, so it is shown where somebody asks for it.
const WISH = "would do";

function kindOf(record) {
  return isWish(record) ? WISH : KINDS[record.kind];
}

// What came of a reconfiguration is told later than it was over.
function when(record) {
  return record.kind === "reconfigured" ? overSince(record) : record.at;
}

// What a record says: [text, what it is about].
function words(record) {
  switch (record.kind) {
    case "tuple_refused": return [`${record.component}, task ${record.task}: ${record.reason}`, record.tuple_text];
    case "record_refused": return [`${record.component}: ${record.reason}`, record.raw];
    case "child_said": return [`${record.component}, task ${record.task} (${LEVELS[record.level] ?? record.level}): ${record.text}`, ""];
    case "activated": return [record.active ? "sources are asked again" : "sources are not asked for now", ""];
    case "lost": return [lost(record), ""];
    case "run_failed": return [record.component ? `${record.component}${record.task === null ? "" : `, task ${record.task}`}: ${record.text}` : record.text, record.tuple_text];
    default: return [record.text ?? JSON.stringify(record), ""];
  }
}

function lost({ progress, others }) {
  return [
    progress && `${count(progress)} looks at metrics were left out: too much waited to be written`,
    others && `${count(others)} refusals and words of children were left out: too many came`,
  ].filter(Boolean).join("; ");
}

export class Logs {
  constructor() {
    this.kind = el("select", { id: "kind", on: { change: () => this.again() } },
      el("option", { value: "" }, "everything"),
      ...[...new Set(Object.values(KINDS)), WISH].map((name) => el("option", { value: name }, name)));
    this.filter = el("input", { id: "filter", type: "search", placeholder: "text", on: { input: () => this.again() } });
    this.sum = el("p", { class: "muted" });
    this.table = new Table([{ name: "Time" }, { name: "What" }, { name: "Text" }, { name: "Tuple or record" }], "Log");
    this.maybe = new Maybe("Nothing has been said, and nothing was refused.", this.table.element);
    this.element = el("div", { class: "view", "data-view": "logs" },
      section("Logs and errors",
        el("p", { class: "filters" }, el("label", { for: "kind" }, "Show "), this.kind, " ", el("label", { for: "filter" }, "with "), this.filter),
        this.sum, this.maybe.element));
  }

  again() {
    if (this.last) this.update(this.last);
  }

  update(model) {
    this.last = model;
    const wanted = this.filter.value.toLowerCase();
    const asked = this.kind.value;
    const told = model.told.filter((each) => !(each.kind === "decided" && !each.text) && (asked === WISH || !isWish(each)));
    const found = gathered(told.filter((each) => {
      if (asked && kindOf(each) !== asked) return false;
      return !wanted || words(each).join(" ").toLowerCase().includes(wanted);
    })).sort(([one], [other]) => when(one) - when(other));
    const refused = model.now?.errors ?? 0, left = leftOut(told);
    setText(this.sum, [
      `${count(found.length)} of ${count(gathered(told).length)} lines${found.length > SHOWN ? `, the last ${SHOWN} shown` : ""}`,
      `${count(refused)} ${refused === 1 ? "tuple" : "tuples"} refused in all`,
      ...(left ? [`${count(left)} refusals and words of children left out here`] : []),
    ].join("; ") + ".");
    if (!this.maybe.show(found.length > 0)) return;
    this.table.fill(found.slice(-SHOWN).reverse().map(([each, times]) => {
      const [said, about] = words(each);
      const text = times > 1 ? `${said} (kept ${count(times)} times, the last of them here)` : said;
      const bad = each.kind.endsWith("_refused") || each.kind === "run_failed" || (each.kind === "child_said" && each.level >= 4);
      return [clock(when(each)), { text: kindOf(each) ?? each.kind, bad }, { text, pre: true }, { text: about ?? "", pre: true }];
    }));
  }
}

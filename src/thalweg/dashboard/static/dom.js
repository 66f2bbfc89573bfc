// Makes elements. Texts of users only ever become text nodes: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export function el(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

export function setText(node, text) {
  const wanted = String(text);
  if (node.textContent !== wanted) node.textContent = wanted;
}

export function section(title, ...children) {
  return el("section", {}, el("h2", {}, title), ...children);
}

// Regions that scroll sideways are stops of the keyboard, and only as long as they do.
const watched = new ResizeObserver((entries) => {
  for (const region of new Set(entries.map(({ target }) => target.closest(".scroll")))) {
    if (region === null) continue;
    const scrolls = region.scrollWidth > region.clientWidth + 1 || region.scrollHeight > region.clientHeight + 1;
    if (scrolls) region.setAttribute("tabindex", "0");
    else region.removeAttribute("tabindex");
  }
});

export function scrolling(label, ...children) {
  const region = el("div", { class: "scroll", role: "region", "aria-label": label }, ...children);
  for (const each of [region, ...children]) watched.observe(each);
  return region;
}

// The name of a component in a table, which leads to its page.
export function toComponent(name) {
  return { text: name, href: `#/component/${encodeURIComponent(name)}` };
}

// A key as text; nothing would be seen of one that is empty.
export function keyText(key) {
  return key === "" ? '""' : key;
}

// A table whose rows are filled again and again; rows and links stay the same elements, so that
// the focus of a keyboard stays where it is. A cell is a text, or {text, href, title, class, pre}.
export class Table {
  constructor(columns, caption) {
    this.columns = columns;
    const heads = columns.map((column) =>
      el("th", { scope: "col", class: column.number ? "number" : null }, column.name));
    this.body = el("tbody");
    this.element = scrolling(caption, el("table", {}, el("caption", { class: "hidden" }, caption),
      el("thead", {}, el("tr", {}, ...heads)), this.body));
  }

  fill(rows) {
    while (this.body.rows.length > rows.length) this.body.deleteRow(-1);
    rows.forEach((row, at) => {
      const line = this.body.rows[at] ?? this.newRow();
      row.forEach((cell, column) => fillCell(line.cells[column], cell));
    });
  }

  newRow() {
    const line = this.body.insertRow();
    for (const column of this.columns) {
      line.append(el("td", { class: column.number ? "number" : null }));
    }
    return line;
  }
}

function fillCell(node, cell) {
  const made = cell !== null && typeof cell === "object" ? cell : { text: cell };
  const text = made.text === null || made.text === undefined ? "–" : String(made.text);
  if (made.href !== undefined) {
    let link = node.firstElementChild;
    if (link === null || link.tagName !== "A") {
      link = el("a", {});
      node.replaceChildren(link);
    }
    if (link.getAttribute("href") !== made.href) link.setAttribute("href", made.href);
    setText(link, text);
  } else if (made.pre) {
    if (node.firstElementChild === null) node.replaceChildren(el("div", { class: "pre" }));
    setText(node.firstElementChild, text);
  } else {
    setText(node, text);
  }
  node.classList.toggle("bad", Boolean(made.bad));
  if (made.title) node.setAttribute("title", made.title);
  else node.removeAttribute("title");
}

// One figure, with its name and a word more.
export class Tile {
  constructor(name, label) {
    this.value = el("div", { class: "value", "data-figure": name });
    this.more = el("div", { class: "more" });
    this.element = el("div", { class: "tile" }, el("div", { class: "label" }, label), this.value, this.more);
  }

  call(label) {
    setText(this.element.firstElementChild, label);
  }

  show(text, more = "", raw = null) {
    setText(this.value, text);
    setText(this.more, more);
    if (raw !== null && raw !== undefined) this.value.dataset.value = String(raw);
    else delete this.value.dataset.value;
  }
}

// What is said of what will be known.
export const UNMEASURED = "Nothing has been measured yet.";

// Shows either a thing or a sentence that says what would fill it.
export class Maybe {
  constructor(sentence, ...things) {
    this.note = el("p", { class: "note" }, sentence);
    this.things = el("div", {}, ...things);
    this.element = el("div", {}, this.note, this.things);
  }

  say(sentence) {
    setText(this.note, sentence);
  }

  show(there) {
    this.note.hidden = there;
    this.things.hidden = !there;
    return there;
  }
}

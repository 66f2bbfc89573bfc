// All records that the page has, within bounds, and what they say at a moment.

const MOST_LOOKS = 1500;
// Of each shelf.
const MOST_OTHERS = 5000;
// Reconfigurations whose keys are known one by one, the last ones.
const MOST_DIFFERENCES = 50;
// Rates are over at least so many seconds, so that they do not jump.
const RATE_SECONDS = 2;
const SMOOTH_SECONDS = 1;
export const MANY_TASKS = 64;

// Looks at the same things: the newest, and of all others every so many-th, so that the whole run
// stays visible.
class Looks {
  constructor() {
    this.list = [];
    this.marks = [];
    this.stride = 1;
    this.added = 0;
  }

  add(record) {
    if (this.marks.length && this.marks.at(-1) % this.stride !== 0) {
      this.list.pop();
      this.marks.pop();
    }
    this.list.push(record);
    this.marks.push(this.added);
    this.added += 1;
    if (this.list.length > MOST_LOOKS) this.widen();
  }

  widen() {
    this.stride *= 2;
    const stays = this.marks.map((mark, at) => mark % this.stride === 0 || at === this.marks.length - 1);
    this.list = this.list.filter((_, at) => stays[at]);
    this.marks = this.marks.filter((_, at) => stays[at]);
  }
}

export class Store {
  constructor() {
    this.last = 0;
    this.begin(null);
  }

  // A topology is the first record of a run: what was before belongs to another one.
  begin(topology) {
    this.topology = topology;
    this.lasting = [];
    this.looks = new Looks();
    this.keys = new Looks();
    this.batches = new Looks();
    this.others = [];
    this.many = new Map();
  }

  add(record) {
    if (record.n <= this.last) return;
    this.last = record.n;
    if (record.kind === "topology") this.begin(record);
    if (record.snapshot) this.addLook(record);
    if (record.shelf === "keys") this.keys.add(record);
    else if (record.shelf === "batch_done") this.batches.add(record);
    else if (record.shelf === "lasting") this.lasting.push(record);
    else if (record.shelf !== "progress") this.addOther(record);
  }

  // A record comes with the name of its shelf: beyond so many, the oldest of the same one go.
  addOther(record) {
    this.others.push(record);
    if (record.difference) forget(this.others);
    const many = (this.many.get(record.shelf) ?? 0) + 1;
    let few = many > MOST_OTHERS ? MOST_OTHERS / 10 : 0;
    this.many.set(record.shelf, many - few);
    if (few) this.others = this.others.filter((each) => each.shelf !== record.shelf || --few < 0);
  }

  addLook(record) {
    const before = this.looks.list.at(-1);
    if (before && record.snapshot.elapsed < before.snapshot.elapsed) this.looks = new Looks();  // another run
    if (before) slim(before.snapshot);
    this.looks.add(record);
  }

  get end() {
    const lists = [this.looks.list, this.keys.list, this.batches.list, this.others, this.lasting];
    return Math.max(0, ...lists.map((list) => list.at(-1)?.at ?? 0));
  }

  // What was known at a moment, in seconds since the start.
  at(moment) {
    const until = (list) => list.slice(0, above(list, moment));
    const looks = until(this.looks.list);
    const look = looks.at(-1) ?? null;
    const now = look?.snapshot ?? null;
    const lasting = until(this.lasting);
    const finished = ending(lasting);
    const others = until(this.others);
    const activated = others.findLast((record) => record.kind === "activated");
    const failure = finished?.kind === "run_failed" ? finished : null;
    return {
      moment,
      topology: this.topology,
      looks,
      look,
      now,
      // Of a run that has ended, rates are those of the whole run.
      before: finished && finished.n >= (look?.n ?? 0) ? null : earlier(looks),
      keys: until(this.keys.list),
      // Whether it is counted which keys occur together, also for those who look back behind the first count.
      learns: this.keys.list.length > 0,
      batches: until(this.batches.list),
      others,
      policy: leading(others) ?? this.topology?.policy ?? "",
      finished,
      // Whether the run has ended by now, also for those who look back.
      over: ending(this.lasting) !== null,
      failure,
      // All that was said and refused, and last what has ended the run.
      told: failure ? [...others, failure] : others,
      started: lasting.some((record) => record.kind === "run_started"),
      paused: finished === null && activated?.active === false,
    };
  }
}

function ending(lasting) {
  return lasting.findLast((record) => record.kind === "run_finished" || record.kind === "run_failed") ?? null;
}

// Whether a record is what a policy would do, which nobody has done.
export function isWish(record) {
  return record.kind === "decided" && !record.carried_out && record.replaces == null;
}

// When a reconfiguration was over: what came of it is waited for before it is told. Older recordings do not say how long.
export function overSince(record) {
  return record.at - (record.report.ago ?? 0);
}

// What was told, as [record, how often]: refusals by one component for one reason are one, the last of them.
export function gathered(records) {
  const found = new Map();
  for (const record of records) {
    const { kind, component, reason, n } = record;
    const like = kind.endsWith("_refused") ? JSON.stringify([kind, component, reason]) : n;
    found.set(like, [record, (found.get(like)?.[1] ?? 0) + 1]);
  }
  return [...found.values()];
}

// How many refusals and words of children were left out, because there were too many.
export function leftOut(records) {
  const said = records.findLast((each) => each.left_out || each.kind === "lost");
  return said?.left_out ?? said?.others ?? 0;
}

// What policies would have done: a wish that a policy has look after look is one, with how often and until when.
export function wishes(records) {
  const found = [], last = new Map();
  for (const record of records.filter(isWish)) {
    const { at, policy, text } = record, wanted = wantedBy(record), before = last.get(policy);
    if (!text) last.delete(policy);
    else if (before?.wanted === wanted) Object.assign(before, { until: at, text, times: before.times + 1 });
    else {
      last.set(policy, { at, until: at, policy, text, times: 1, wanted });
      found.push(last.get(policy));
    }
  }
  return found;
}

// The degrees that are wanted; reasons have figures, which are others each time.
function wantedBy({ degrees, text }) {
  const changes = Object.entries(degrees).filter(([, [before, after]]) => before !== after);
  return changes.length ? JSON.stringify(changes) : text;
}

// Keys of all reconfigurations would fill the memory.
function forget(others) {
  const told = others.filter((record) => record.difference);
  for (const record of told.slice(0, -MOST_DIFFERENCES)) delete record.difference;
}

// Who decides about degrees: the policy that took over last, or whose decisions are carried out.
function leading(others) {
  const decided = others.filter((record) => record.kind === "decided");
  const led = decided.findLast((record) => record.replaces != null);
  return (led ?? decided.findLast((record) => record.carried_out))?.policy;
}

// With many tasks, only the newest look has the figures of each; the others would fill the memory.
function slim(snapshot) {
  const tasks = snapshot.components.reduce((sum, each) => sum + each.task_stats.length, 0);
  if (tasks <= MANY_TASKS) return;
  snapshot.slim = true;
  for (const each of snapshot.components) each.task_stats = [];
}

// How many records are not behind a moment.
function above(list, moment) {
  let low = 0, high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].at <= moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The look that rates at the last one are taken from.
function earlier(looks) {
  const last = looks.at(-1);
  if (!last) return null;
  for (let at = looks.length - 2; at >= 0; at -= 1) {
    if (last.snapshot.elapsed - looks[at].snapshot.elapsed >= RATE_SECONDS) return looks[at].snapshot;
  }
  return null;
}

// Between whose keys nobody looks for pairs, as they have different numbers of tasks, or would have.
export function parted(model, degrees = {}) {
  const tasks = (name) => degrees[name] ?? component(model.now, name)?.degree;
  const links = model.keys.flatMap((each) => each.links);
  const apart = links.filter(({ sender, reader }) => tasks(sender) && tasks(reader) && tasks(sender) !== tasks(reader));
  const names = [...new Set(apart.flatMap(({ sender, reader }) => [sender, reader]))];
  return names.length ? `keys are brought together only while ${names.join(" and ")} have as many tasks` : "";
}

export function component(snapshot, name) {
  return snapshot?.components.find((each) => each.component === name) ?? null;
}

// The growth of a count per second, between two snapshots; since the start where there is one only.
export function growth(model, read) {
  if (!model.now) return null;
  const span = model.now.elapsed - (model.before?.elapsed ?? 0);
  const before = model.before ? read(model.before) ?? 0 : 0;
  const now = read(model.now);
  return span > 0 && now !== null && now !== undefined ? Math.max(0, now - before) / span : null;
}

// Seconds that the tasks of a component had between two snapshots, as many as there were.
function taskSeconds(model, name) {
  const begin = model.before?.elapsed ?? 0;
  let last = model.before, at = begin, total = 0;
  for (const { snapshot } of model.looks) {
    const degree = component(snapshot, name)?.degree;
    if (snapshot.elapsed <= begin || degree === undefined) continue;
    total += (snapshot.elapsed - at) * meanDegree(last, snapshot, name);
    at = snapshot.elapsed;
    last = snapshot;
  }
  return total;
}

// Somewhere between two looks it has changed.
function meanDegree(before, now, name) {
  const degree = component(now, name)?.degree;
  return degree === undefined ? null : (degree + (component(before, name)?.degree ?? degree)) / 2;
}

// How the time of a component's tasks was spent: at work, back-pressured (too much waits behind
// them), and waiting for tuples or for a worker; null where the runtime does not say.
export function shares(model, name) {
  const span = model.now ? model.now.elapsed - (model.before?.elapsed ?? 0) : 0;
  const tasks = span > 0 ? taskSeconds(model, name) / span : 0;
  const of = (field) => growth(model, (snapshot) => component(snapshot, name)?.[field]);
  return split(of("busy"), of("blocked"), tasks);
}

// Share of the time of its tasks that a component was at work.
export function busyShare(model, name) {
  return shares(model, name).busy;
}

// The same for series.
export function sharesOver(name) {
  const busy = perSecond((snapshot) => component(snapshot, name)?.busy);
  const blocked = perSecond((snapshot) => component(snapshot, name)?.blocked);
  return (now, before) => split(busy(now, before), blocked(now, before), meanDegree(before, now, name));
}

// What each task of a component has received: in the last seconds, or, where nothing came or the run
// has ended, as long as it had this degree. Counts of tasks go on when others come and go.
export function tasksReceived(model, name) {
  const now = component(model.now, name);
  if (now === null) return [];
  const then = component(model.before, name);
  const recent = then?.degree === now.degree ? grown(now, then) : null;
  return recent?.some((count) => count > 0) ? recent : grown(now, beforeDegree(model, now));
}

function grown(now, then) {
  return now.per_task.slice(0, now.degree).map((count, task) => Math.max(0, count - (then?.per_task[task] ?? 0)));
}

// The look before the degree of a component became what it is; null where it was so all the time.
function beforeDegree(model, now) {
  const { looks } = model;
  for (let at = looks.length - 2; at >= 0; at -= 1) {
    const then = component(looks[at].snapshot, now.component);
    if (then !== null && then.degree !== now.degree) return then;
  }
  return null;
}

// By seconds at work and held up, per second, and tasks.
function split(worked, blocked, tasks) {
  const busy = worked === null || !tasks ? null : Math.min(1, worked / tasks);
  if (busy === null || blocked === null) return { busy, pressed: null, waiting: null };
  const pressed = Math.min(1 - busy, blocked / tasks);
  return { busy, pressed, waiting: 1 - busy - pressed };
}

// Values over time, one per look: reads a snapshot and one before it, at least a second earlier
// where there is one, so that lines do not jump with every block.
export function series(looks, read) {
  let base = 0;
  return looks.map((look, at) => {
    const late = (index) => look.snapshot.elapsed - looks[index].snapshot.elapsed >= SMOOTH_SECONDS;
    while (base + 1 < at && late(base + 1)) base += 1;
    return read(look.snapshot, at > 0 ? looks[base].snapshot : null);
  });
}

// Looks for which a value may be missing before that is a gap in its line.
const MISSED = 3;

// The same values with what is missing for a few looks undefined, which lines are drawn across: what is null is a gap.
export function bridged(values) {
  const made = [...values];
  for (let from = 0, to; from < made.length; from = to + 1) {
    for (to = from; made[to] === null; to += 1);
    if (to - from <= MISSED) made.fill(undefined, from, to);
  }
  return made;
}

export function times(looks) {
  return looks.map((look) => look.at);
}

// A count per second, for series.
export function perSecond(read) {
  return (now, before) => {
    if (!before) return null;
    const span = now.elapsed - before.elapsed;
    const value = read(now), base = read(before);
    return span > 0 && value != null && base != null ? Math.max(0, value - base) / span : null;
  };
}

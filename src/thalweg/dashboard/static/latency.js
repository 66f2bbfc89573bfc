// How long blocks take from their arrival to their end, or batches on Spark: now, and since the start.

import { seconds } from "./format.js";
import { series } from "./store.js";

// That of the last seconds; older recordings only have that since the start.
export function lately(snapshot) {
  return snapshot.recent === undefined ? snapshot.latency : snapshot.recent;
}

// What it is of, in words.
export function span(looks) {
  const recent = looks.findLast((look) => look.snapshot.recent)?.snapshot.recent;
  if (recent) return ` of the last ${Math.round(recent.over)} s`;
  return looks.at(-1)?.snapshot.recent === undefined ? " since the start" : "";
}

export function lines(looks, names) {
  return names.map((name) => ({ name, values: series(looks, (s) => lately(s)?.[name] ?? null) }));
}

// Of a run that is over, the whole run counts.
export function tell(tile, what, model) {
  const { now, looks, finished } = model;
  const shown = finished ? now.latency : lately(now);
  tile.call(`${what} p50${finished ? "" : span(looks)}`);
  const parts = shown ? [`p95 ${seconds(shown.p95)}, p99 ${seconds(shown.p99)}`] : [];
  if (shown !== now.latency && now.latency) parts.push(`whole run p99 ${seconds(now.latency.p99)}`);
  tile.show(seconds(shown?.p50), parts.join("; "), shown?.p50);
}

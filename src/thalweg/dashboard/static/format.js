// Numbers and times as people read them.

const NONE = "–";
const known = (value) => typeof value === "number" && Number.isFinite(value);

export function count(value) {
  return known(value) ? Math.round(value).toLocaleString("en-US") : NONE;
}

// 1234567 is 1.23 M.
export function short(value) {
  if (!known(value)) return NONE;
  const size = Math.abs(value);
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (size >= limit) return `${trimmed(value / (unit === "k" ? 1e3 : limit))} ${unit}`;
  }
  return size >= 100 || Number.isInteger(value) ? Math.round(value).toLocaleString("en-US") : trimmed(value);
}

function trimmed(value) {
  const size = Math.abs(value);
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function rate(value) {
  return known(value) ? `${short(value)}/s` : NONE;
}

export function share(value) {
  return known(value) ? `${(100 * value).toFixed(value !== 0 && Math.abs(value) < 0.1 ? 1 : 0)} %` : NONE;
}

export function seconds(value) {
  if (!known(value)) return NONE;
  if (value === 0) return "0 s";
  if (value >= 120) return `${(value / 60).toFixed(1)} min`;
  if (value >= 1) return `${value.toFixed(2)} s`;
  if (value >= 1e-3) return `${(1e3 * value).toFixed(value >= 0.1 ? 0 : 1)} ms`;
  return `${(1e6 * value).toFixed(0)} µs`;
}

export function millis(value) {
  return known(value) ? (1e3 * value).toFixed(3) : NONE;
}

export function bytes(value) {
  if (!known(value)) return NONE;
  for (const [limit, unit] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (value >= limit) return `${trimmed(value / limit)} ${unit}`;
  }
  return `${Math.round(value)} bytes`;
}

// Units of an axis; all its marks have the same one, that of the highest.
const UNITS = new Map([
  [rate, { end: "/s", units: [[1e9, " G"], [1e6, " M"], [1e4, " k", 1e3], [0, ""]] }],
  [count, { end: "", whole: true, units: [[1e9, " G"], [1e6, " M"], [1e4, " k", 1e3], [0, ""]] }],
  [seconds, { end: "", units: [[120, " min", 60], [1, " s"], [1e-3, " ms"], [0, " µs", 1e-6]] }],
  [bytes, { end: "", units: [[1e9, " GB"], [1e6, " MB"], [1e3, " kB"], [0, " bytes"]] }],
]);

// The marks of an axis: [0, 5000, 10000] tuples per second are 0, 5 k/s, 10 k/s.
export function axisTexts(format, ticks) {
  const known = UNITS.get(format);
  if (!known) return ticks.map((tick) => format(tick));
  const most = Math.max(...ticks.map(Math.abs));
  const [limit, unit, by] = known.units.find(([least]) => most >= least);
  return ticks.map((tick) => {
    if (known.whole && !Number.isInteger(tick)) return "";
    const value = Number((tick / (by ?? (limit || 1))).toPrecision(4));
    return tick === 0 ? "0" : `${value.toLocaleString("en-US")}${unit}${known.end}`;
  });
}

export function number(value, digits = 2) {
  return known(value) ? value.toFixed(digits) : NONE;
}

// A name with so many letters at most. Long names begin or end alike, so what is left out is in the middle.
export function shortened(text, most) {
  const letters = [...text];
  if (letters.length <= most) return text;
  const end = Math.floor((most - 1) / 2);
  return `${letters.slice(0, most - 1 - end).join("")}…${letters.slice(letters.length - end).join("")}`;
}

// Seconds since the start of a run: 3725.4 is 1:02:05.
export function clock(value) {
  if (!known(value)) return NONE;
  const whole = Math.max(0, Math.floor(value));
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const [h, m, s] = parts.map((part) => String(part).padStart(2, "0"));
  return parts[0] > 0 ? `${h}:${m}:${s}` : `${m}:${s}`;
}

export function wallTime(value) {
  return known(value) && value > 0 ? new Date(1e3 * value).toLocaleString() : NONE;
}

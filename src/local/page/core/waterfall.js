/**
 * A query's trace as a waterfall: rows in the order they are drawn, fences where an attempt began, and the part of the
 * time that is shown. Times are seconds since 1970.
 * @typedef {{id: string, parent: string|null, kind: string, name: string, started: number, ended: number|null,
 *   attempt?: number, detail?: any}} Span
 * @typedef {{span: Span, label: string, depth: number, from: number, to: number, isOpen: boolean, isCritical: boolean,
 *   isAfter: boolean, firstWord: number|null}} Row
 * @typedef {{from: number, to: number}} View
 */

const NARROWEST = 0.001; // seconds; nothing on the bus is timed better
const WHOLE = "query"; // the id of the span that all others are in
const DEEPEST = 4; // steps of indentation; a row deeper down stays readable

/** Kinds in the order of a legend, and what each is called. */
export const KINDS = { line: "in line", model: "model", tool: "tools", memory: "memory", critic: "critic", store: "store", other: "other" };

/** @param {any} trace as `/query/{id}/trace` gives it @param {number} now for what is not over yet */
export function waterfall(trace, now) {
  const all = (trace.spans ?? []).filter((span) => Number.isFinite(span.started));
  const spans = all.length > 1 ? all.filter((span) => span.id !== WHOLE) : all; // what the whole took is said elsewhere
  const whole = extent(trace, all, now);
  const labels = labelled(spans);
  const critical = new Set(trace.critical_path ?? []);
  const answeredAt = answerOf(trace)?.sent_at ?? Infinity;
  const rows = inOrder(spans).map(([span, depth]) => ({
    span,
    label: labels.get(span),
    depth: Math.min(depth, DEEPEST),
    from: span.started,
    to: Math.max(span.started, span.ended ?? whole.to),
    isOpen: span.ended == null,
    isCritical: critical.has(span.id),
    isAfter: span.started >= answeredAt,
    firstWord: span.detail?.first_token ?? null,
  }));
  return { rows, whole, fences: fencesOf(trace), answeredAt: Number.isFinite(answeredAt) ? answeredAt : null };
}

/** Several calls of one model or tool are numbered. */
function labelled(spans) {
  const count = (found, span) => found.set(span.name, (found.get(span.name) ?? 0) + 1);
  const all = spans.reduce(count, new Map());
  const met = new Map();
  return new Map([...spans].sort((one, other) => one.started - other.started).map((span) => {
    const number = count(met, span).get(span.name);
    return [span, all.get(span.name) > 1 ? `${span.name} ${number}` : span.name];
  }));
}

/** The envelope that ended the query, or undefined. */
export function answerOf(trace) {
  return (trace.envelopes ?? []).find((one) => one.subject === "response.generation" || one.subject === "query.failed");
}

function extent(trace, spans, now) {
  const sent = (trace.envelopes ?? []).map((one) => one.sent_at).filter(Number.isFinite);
  const begins = [...spans.map((span) => span.started), ...(spans.length ? [] : sent)];
  const ends = spans.map((span) => span.ended ?? now);
  const from = begins.reduce((least, one) => Math.min(least, one), Infinity);
  const to = [...ends, ...(spans.length ? [] : sent)].reduce((most, one) => Math.max(most, one), -Infinity);
  if (!Number.isFinite(from)) return { from: now, to: now + NARROWEST };
  return { from, to: Math.max(to, from + NARROWEST) };
}

/** What was going on so many seconds after the beginning, by its label. */
export function atMoment({ rows, whole }, after) {
  const at = whole.from + after;
  return rows.filter((row) => row.from - SAME <= at && at <= row.to + SAME).map((row) => row.label);
}

const SAME = 1e-4; // seconds that a moment may be beside its message

/** The times of the messages before and after a moment, in seconds since `from`, null where there is none, and the latest
 * message that had been sent by then. @param {any[]} envelopes */
export function besides(envelopes, from, after) {
  const all = envelopes.filter((one) => Number.isFinite(one.sent_at)).map((one) => ({ message: one, after: Math.max(0, one.sent_at - from) })).sort((one, other) => one.after - other.after);
  return {
    previous: all.findLast((one) => one.after < after - SAME)?.after ?? null,
    next: all.find((one) => one.after > after + SAME)?.after ?? null,
    message: all.findLast((one) => one.after <= after + SAME)?.message ?? null,
  };
}

/** Each span after its parent, siblings by their beginning; spans without a parent are roots. */
function inOrder(spans) {
  const known = new Map(spans.map((span) => [span.id, span]));
  const children = new Map();
  for (const span of spans) {
    const parent = known.has(span.parent) && span.parent !== span.id ? span.parent : null;
    if (!children.has(parent)) children.set(parent, []);
    children.get(parent).push(span);
  }
  for (const siblings of children.values()) siblings.sort((one, other) => one.started - other.started);
  const found = [];
  const seen = new Set();
  const walk = (roots) => {
    const stack = [...roots].reverse().map((span) => [span, 0]);
    while (stack.length) {
      const [span, depth] = stack.pop();
      if (seen.has(span)) continue;
      seen.add(span);
      found.push([span, depth]);
      for (const child of [...(children.get(span.id) ?? [])].reverse()) stack.push([child, depth + 1]);
    }
  };
  walk(children.get(null) ?? []);
  walk(spans.filter((span) => !seen.has(span))); // parents that are each other's children
  return found;
}

/** Where each attempt but the first began, and why there had to be another. */
function fencesOf(trace) {
  return (trace.attempts ?? [])
    .filter((one) => one.attempt > 1 && Number.isFinite(one.started))
    .map(({ attempt, started, reason }) => ({ attempt, at: started, reason: reason || "The previous attempt did not finish." }));
}

/** What each kind of work took, the most first, with its share of the sum of them. */
export function shares(selfTime) {
  const all = Object.entries(selfTime ?? {}).filter(([, seconds]) => seconds > 0);
  const sum = all.reduce((total, [, seconds]) => total + seconds, 0);
  return all.sort((one, other) => other[1] - one[1]).map(([kind, seconds]) => ({ kind, name: KINDS[kind] ?? kind, seconds, share: seconds / sum }));
}

/** The position of a moment in the view, in per cent, limited to its surroundings, so that no bar grows without end.
 * @param {number} at @param {View} view */
export function placed(at, view) {
  return Math.min(110, Math.max(-10, (100 * (at - view.from)) / (view.to - view.from)));
}

/** The view nearer (`factor` < 1) or farther, about the moment at `share` of it, never beyond the whole.
 * @param {View} view @param {View} whole */
export function zoomed(view, whole, factor, share = 0.5) {
  const most = whole.to - whole.from;
  const width = Math.min(most, Math.max(Math.min(NARROWEST, most), (view.to - view.from) * factor));
  const at = view.from + (view.to - view.from) * share;
  return within({ from: at - width * share, to: at + width * (1 - share) }, whole);
}

/** The view moved by `share` of its width. @param {View} view @param {View} whole */
export function panned(view, whole, share) {
  const by = (view.to - view.from) * share;
  return within({ from: view.from + by, to: view.to + by }, whole);
}

function within(view, whole) {
  const width = view.to - view.from;
  if (width >= whole.to - whole.from) return { ...whole };
  const from = Math.min(Math.max(view.from, whole.from), whole.to - width);
  return { from, to: from + width };
}

/** Round moments of the view, about `most` of them: `{at, after}`, `after` in seconds since the beginning of the whole.
 * @param {View} view @param {View} whole */
export function ticks(view, whole, most = 5) {
  const rough = (view.to - view.from) / most;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((one) => one * size).find((one) => one >= rough * 0.999);
  const found = [];
  const first = Math.ceil((view.from - whole.from) / step - 1e-6);
  for (let number = first; found.length < 4 * most; number += 1) {
    const after = number * step;
    if (whole.from + after > view.to) break;
    found.push({ at: whole.from + after, after });
  }
  return found;
}

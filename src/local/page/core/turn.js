/**
 * One question and what became of it: a fold of events, without a page, a clock or a network.
 * @typedef {import("../types/shapes.js").Turn} Turn
 * @typedef {import("../types/shapes.js").ToolCall} ToolCall
 */

const MOST_OUTPUT = 4000; // characters that are shown of what a running call has written
const NO_SCORES = Object.freeze({ critique: null, pairwise: null, rating: null });

/** What was asked, before anything is known of it. @returns {Turn} */
export function asked(queryId, sessionId, query, more = {}) {
  return {
    query_id: queryId,
    session_id: sessionId,
    query,
    attachments: [],
    status: "open",
    phase: "waiting",
    answer: "",
    thinking: "",
    context: null,
    tool_calls: [],
    model: null,
    usage: null,
    degraded: [],
    error: null,
    scores: NO_SCORES,
    attempt: 0,
    waiting_for: null,
    reading: null,
    created_at: null,
    finished_at: null,
    ...more,
  };
}

/** How much of its limits a turn has used that took more than one step; empty for any other. */
export function stepsTaken({ usage }) {
  const totals = usage?.totals;
  return totals?.steps > 1 ? `${totals.steps} of ${totals.max_steps} steps, ${totals.calls} of ${totals.max_calls} calls` : "";
}

/** A turn as the record gives it. What the record does not have, such as the phase, follows from its status.
 * @returns {Turn} */
export function recorded(row, sessionId) {
  const known = Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined && value !== null));
  const turn = asked(row.query_id, row.session_id ?? sessionId, row.query ?? "", known);
  return { ...turn, error: row.error ?? null, phase: turn.status === "open" ? phaseOf(turn) : "ended" };
}

function phaseOf(turn) {
  if (turn.answer) return "answering";
  if (turn.tool_calls.some((call) => !isDone(call))) return "calling";
  return turn.thinking ? "thinking" : "waiting";
}

/** Whether nothing was done for a question yet: it may stand in a line. */
export function isUntouched(turn) {
  return turn.status === "open" && !turn.thinking && !turn.answer && !turn.tool_calls.length;
}

/** What a turn waits for of which nothing is seen yet, in words; empty while a call runs, which is seen. */
export function waitedFor(turn) {
  if (turn.waiting_for) return `waits: ${turn.waiting_for}`;
  if (turn.reading) return `reading your question and its context, ${Math.floor((100 * turn.reading.done) / Math.max(1, turn.reading.total))} % of ${grouped(turn.reading.total)} tokens`;
  if (turn.phase === "sending") return "waiting for the journal to store the question";
  if (turn.phase === "calling") return "";
  return turn.attempt ? "waiting for the model" : "waiting for its turn";
}

function grouped(number) {
  return number.toLocaleString("en");
}

/** Whether a call has ended. */
export function isDone(call) {
  return call.error != null || call.result != null || call.duration_ms != null;
}

/** The turn after one event; the same object where the event changes nothing. @returns {Turn} */
export function after(turn, event, data) {
  const step = Object.hasOwn(STEPS, event) ? STEPS[event] : null;
  return step ? step(turn, data) : turn;
}

/** @type {Record<string, (turn: Turn, data: any) => Turn>} */
const STEPS = {
  accepted: (turn, data) =>
    turn.status === "open"
      ? { ...turn, attempt: data.attempt, phase: phaseOf(turn), waiting_for: null, reading: null }
      : turn,
  thinking: (turn, data) => grown(turn, { thinking: turn.thinking + data.text, phase: "thinking" }, data),
  token: (turn, data) => grown(turn, { answer: turn.answer + data.text, phase: "answering" }, data),
  context: (turn, data) => grown(turn, { context: data }, data),
  tool_call: (turn, data) =>
    grown(turn, { tool_calls: withCall(turn.tool_calls, data), phase: "calling" }, data),
  tool_progress: (turn, data) => {
    const call = turn.tool_calls.find((one) => one.call_id === data.call_id);
    if (!call || isDone(call)) return turn;
    const output = `${call.output ?? ""}${data.text}`.slice(-MOST_OUTPUT);
    return grown(turn, { tool_calls: withCall(turn.tool_calls, { call_id: data.call_id, output }) }, data);
  },
  tool_result: (turn, data) => {
    const calls = withCall(turn.tool_calls, { ...data, output: "" });
    return grown(turn, { tool_calls: calls, phase: calls.every(isDone) ? "thinking" : "calling" }, data);
  },
  waiting: (turn, data) => grown(turn, { waiting_for: data.reason ?? "the model" }, data),
  progress: (turn, data) => grown(turn, { reading: { done: data.done, total: data.total } }, data),
  snapshot: (turn, data) => (turn.status === "open" ? replaced(turn, data) : turn),
  response: (turn, data) => replaced(turn, data),
  error: (turn, data) => failed(turn, data.error),
  critique: (turn, data) => scored(turn, "critique", data),
  pairwise: (turn, data) => scored(turn, "pairwise", data),
  feedback: (turn, data) => scored(turn, "rating", data.rating),
};

function grown(turn, change, data) {
  if (turn.status !== "open" || (data.attempt ?? turn.attempt) < turn.attempt) return turn;
  return { ...turn, waiting_for: null, reading: null, ...change, attempt: data.attempt ?? turn.attempt };
}

function replaced(turn, data) {
  const scores = { ...turn.scores, ...withoutNull(data.scores ?? {}) };
  const status = data.status ?? turn.status;
  const next = { ...turn, ...withoutNull(data), scores, status, error: data.error ?? null, waiting_for: null, reading: data.reading ?? null };
  return { ...next, query: data.query ?? turn.query, phase: status === "open" ? phaseOf(next) : "ended" };
}

function failed(turn, error) {
  if (turn.status !== "open") return turn;
  if (error?.kind === "cancelled") return { ...turn, status: "cancelled", phase: "ended" };
  return { ...turn, status: "failed", phase: "ended", error: error ?? { kind: "unknown", message: "" } };
}

function scored(turn, name, value) {
  return { ...turn, scores: { ...turn.scores, [name]: value } };
}

function withoutNull(data) {
  return Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null && value !== undefined));
}

/** @param {ToolCall[]} calls @returns {ToolCall[]} */
function withCall(calls, data) {
  const at = calls.findIndex((call) => call.call_id === data.call_id);
  if (at < 0) return [...calls, { ...data }];
  return calls.map((call, index) => (index === at ? { ...call, ...withoutNull(data) } : call));
}

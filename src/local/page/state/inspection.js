/** What the inspector shows: what is selected, and the trace of its query, which is kept up to date while it is shown. */

import { computed, effect, signal, untracked } from "../html.js";
import { tabFor, wholeOf } from "../core/selection.js";
import { request } from "../net/api.js";
import { conversationOf } from "./conversation.js";
import { currentId, inspectorTab, isInspectorOpen, selected } from "./store.js";

const KEPT = 20; // traces in memory
const AFTERMATH_MS = 1500; // what is said after an answer, such as that it is remembered, comes about then

/** What is selected: what somebody chose, or else the last turn that is shown. */
export const selection = computed(() => {
  if (selected.value?.kind) return { sessionId: currentId.value, ...selected.value };
  const queryId = currentId.value ? conversationOf(currentId.value).order.value.at(-1) : null;
  return queryId ? { kind: "turn", sessionId: currentId.value, queryId } : null;
});

/** Which tab is shown of it. */
export const tab = computed(() => tabFor(selection.value, inspectorTab.value));

/** The turn that the selection is or belongs to, or null. */
export const turnShown = computed(() => {
  const { sessionId, queryId } = selection.value ?? {};
  if (!sessionId || !queryId) return null;
  const conversation = conversationOf(sessionId);
  return conversation.order.value.includes(queryId) ? (conversation.turn(queryId)?.value ?? null) : null; // it may be loaded later
});

/** @param {import("../core/selection.js").Selection} selection @param {string} [wanted] a tab */
export function inspect(selection, wanted) {
  selected.value = selection;
  if (wanted) inspectorTab.value = wanted;
  isInspectorOpen.value = true;
  const { kind, sessionId, queryId } = selection;
  if (kind === "turn" && sessionId && queryId) history.replaceState(null, "", `#/c/${encodeURIComponent(sessionId)}/${encodeURIComponent(queryId)}`);
}

/** The moment of an answer that the address names or that was gone to: `{queryId, after}`, in seconds since its beginning. */
export const moment = signal(null);

/** Have the address name a moment. @param {{sessionId?: string, queryId?: string}} shown @param {number} after */
export function noteMoment({ sessionId, queryId }, after) {
  moment.value = { queryId, after };
  history.replaceState(null, "", `#/c/${encodeURIComponent(sessionId)}/${encodeURIComponent(queryId)}@${Math.round(after * 1e6) / 1000}`);
}

/** Show a turn of the conversation that is shown, the last one where none is named. @param {string} [wanted] a tab */
export function inspectTurn(queryId, wanted) {
  if (queryId) inspect({ kind: "turn", sessionId: currentId.peek(), queryId }, wanted);
  else {
    if (wanted) inspectorTab.value = wanted;
    isInspectorOpen.value = true;
  }
}

/** Back to what the selection is a part of. */
export function inspectWhole() {
  const whole = wholeOf(selection.peek());
  if (whole) selected.value = whole;
}

const traces = new Map();

/** The trace of a query: a signal of `{value, trouble, isLoading}`. */
export function traceOf(queryId) {
  const there = traces.get(queryId) ?? signal({ value: null, trouble: null, isLoading: false });
  traces.delete(queryId);
  traces.set(queryId, there);
  for (const [id] of traces) {
    if (traces.size <= KEPT) break;
    traces.delete(id);
  }
  return there;
}

/** Read a trace, again if it is known. Leaves `trouble`; raises nothing. */
export async function loadTrace(queryId) {
  const trace = traceOf(queryId);
  if (trace.peek().isLoading) return;
  trace.value = { ...trace.peek(), isLoading: true };
  try {
    const value = await request("GET", `/query/${encodeURIComponent(queryId)}/trace`);
    trace.value = { value, trouble: null, isLoading: false };
  } catch (failure) {
    trace.value = { ...trace.peek(), trouble: failure, isLoading: false };
  }
}

let followed = "";
let aftermath = 0;

/** Read the trace of what is shown whenever the turn has come a step further. */
export function followTraces() {
  return effect(() => {
    const turn = turnShown.value;
    if (!isInspectorOpen.value || !turn || turn.phase === "sending") return;
    const step = stepOf(turn);
    if (step === followed) return;
    followed = step;
    clearTimeout(aftermath);
    untracked(() => void loadTrace(turn.query_id));
    if (turn.status !== "open") aftermath = setTimeout(() => void loadTrace(turn.query_id), AFTERMATH_MS);
  });
}

/** What of a turn tells that there is more in its trace. */
function stepOf(turn) {
  const ended = turn.tool_calls.filter((call) => call.duration_ms != null).length;
  const scores = Object.values(turn.scores ?? {}).map((score) => (score ? 1 : 0));
  return [turn.query_id, turn.status, turn.phase, turn.attempt, turn.tool_calls.length, ended, ...scores].join(" ");
}

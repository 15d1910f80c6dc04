/**
 * The list that the model keeps of what is to be done: each call of its tool sets all of it.
 * @typedef {{text: string, state: string}} TodoItem
 */

const TOOL = "todo";

/** What each state is called, and its mark. */
export const STATES = Object.freeze({ open: ["open", "○"], doing: ["in work", "◐"], done: ["done", "✓"], dropped: ["dropped", "–"] });

/** Whether a call has set the list; one that failed has not. */
export function setsList(call) {
  return call.tool === TOOL && call.result != null && Array.isArray(call.args?.items);
}

/** The list after these calls. @returns {TodoItem[]} */
export function listAfter(calls) {
  const items = calls.findLast(setsList)?.args.items ?? [];
  return items.map((item) => ({ text: String(item.text ?? ""), state: Object.hasOwn(STATES, item.state) ? item.state : "open" }));
}

/** "2 of 5 done"; what was dropped counts as neither. @param {TodoItem[]} items */
export function progress(items) {
  const meant = items.filter(({ state }) => state !== "dropped");
  return `${meant.filter(({ state }) => state === "done").length} of ${meant.length} done`;
}

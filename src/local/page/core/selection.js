/**
 * What can be selected, and what there is to see of it.
 * @typedef {{kind: "turn"|"call"|"envelope"|"engram"|"participant", sessionId?: string, queryId?: string,
 *   callId?: string, envelope?: any, engramId?: string, name?: string}} Selection
 */

export const TABS = Object.freeze({ story: "Story", time: "Time", context: "Context", sources: "Sources", raw: "Raw" });

const OF_KIND = {
  turn: ["story", "time", "context", "sources", "raw"],
  call: ["story", "time", "sources", "raw"],
  envelope: ["raw"],
  engram: ["story", "raw"],
  participant: ["story", "raw"],
};

/** The tabs of a selection, in the order in which they stand. @param {Selection} selection */
export function tabsOf(selection) {
  return OF_KIND[selection?.kind] ?? [];
}

/** The tab that is shown: the one that was asked for, or the first of those that there are. @param {Selection} selection */
export function tabFor(selection, wanted) {
  const tabs = tabsOf(selection);
  return tabs.includes(wanted) ? wanted : (tabs[0] ?? null);
}

/** What the selection is a part of, null if it is whole. @param {Selection} selection @returns {Selection|null} */
export function wholeOf(selection) {
  if (selection?.kind === "call" || (selection?.kind === "envelope" && selection.queryId)) {
    return { kind: "turn", sessionId: selection.sessionId, queryId: selection.queryId };
  }
  return null;
}

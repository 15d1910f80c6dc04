/** Changes of files, gathered by the question that they were made for. */

/**
 * @typedef {{path: string, what: string, tool: string, call_id: string, query_id: string, session_id: string, at: number, undone: boolean}} Change
 * @param {Change[]} changes the latest first
 * @returns {{queryId: string, sessionId: string, at: number, isUndone: boolean, calls: {callId: string, tool: string, changes: Change[], isUndone: boolean}[]}[]}
 * the question that changed something last first; `isUndone` says that nothing of it is left to undo
 */
export function byQuery(changes) {
  const found = new Map();
  for (const change of changes) {
    let query = found.get(change.query_id);
    if (!query) found.set(change.query_id, (query = { queryId: change.query_id, sessionId: change.session_id, at: change.at, calls: new Map() }));
    let call = query.calls.get(change.call_id);
    if (!call) query.calls.set(change.call_id, (call = { callId: change.call_id, tool: change.tool, changes: [] }));
    call.changes.push(change);
  }
  const isUndone = (list) => list.every((one) => one.undone);
  return [...found.values()].map((query) => {
    const calls = [...query.calls.values()].map((call) => ({ ...call, isUndone: isUndone(call.changes) }));
    return { ...query, calls, isUndone: calls.every((call) => call.isUndone) };
  });
}

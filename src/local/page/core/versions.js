/**
 * Which conversations go another way from a turn on: the one in which it was asked first, and those that branch off
 * before it, in the order in which they began.
 * @typedef {{session_id: string, branched_from: string, before: string, first: string | null}} Branch
 */

/** @param {{query_id: string, copy_of?: string | null}} turn @param {string} sessionId @param {Branch[]} branches
 * @returns {{sessions: string[], at: number}} and which of them the turn is of */
export function versionsAt(turn, sessionId, branches) {
  const original = turn.copy_of ?? turn.query_id;
  const isNew = (one) => !turn.copy_of && one.session_id === sessionId && one.first === null;
  const own = branches.find((one) => one.first === original || isNew(one));
  const before = own ? own.before : original;
  const others = branches.filter((one) => one.before === before);
  if (!others.length) return { sessions: [], at: 0 };
  const sessions = [others[0].branched_from, ...others.map((one) => one.session_id)];
  return { sessions, at: own ? sessions.indexOf(own.session_id) : 0 };
}

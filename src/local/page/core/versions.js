/**
 * Which versions of a conversation go another way from a turn on: the one in which it was asked first, and those that
 * branch off before it, in the order in which they began. Branches that are conversations of their own are no versions.
 * @typedef {{session_id: string, branched_from: string, before: string, version_of?: string | null, first: string | null}} Branch
 */

/** @param {{query_id: string, copy_of?: string | null}} turn @param {string} sessionId @param {Branch[]} branches
 * @param {string} conversation the id of its first version @returns {{sessions: string[], at: number}} and which of them the turn is of */
export function versionsAt(turn, sessionId, branches, conversation = sessionId) {
  branches = branches.filter(({ version_of: of }) => of === conversation || of === null || of === undefined); // older records do not say
  const original = turn.copy_of ?? turn.query_id;
  const isNew = (one) => !turn.copy_of && one.session_id === sessionId && one.first === null;
  const own = branches.find((one) => one.first === original || isNew(one));
  const before = own ? own.before : original;
  const others = branches.filter((one) => one.before === before);
  if (!others.length) return { sessions: [], at: 0 };
  const origin = others[0].branched_from;
  const isVersion = branches.some((one) => one.session_id === origin || one.version_of == null);
  const sessions = [isVersion ? origin : conversation, ...others.map((one) => one.session_id)];
  return { sessions, at: own ? sessions.indexOf(own.session_id) : 0 };
}

/**
 * Which versions of a conversation go another way from a turn on: the one in which it was asked first, and those that
 * branch off before it, in the order in which they began. An edit of an edit branches off before the first question of
 * a version; it belongs to the turn that this version replaces. Branches that are conversations of their own are no versions.
 * @typedef {{session_id: string, branched_from: string, before: string, version_of?: string | null, first: string | null}} Branch
 */

/** @param {{query_id: string, copy_of?: string | null}} turn @param {Branch[]} branches
 * @param {string} conversation the id of its first version
 * @returns {{versions: {session_id: string, query_id: string}[], at: number}} the versions, each with its turn, and which of them the turn is of */
export function versionsAt(turn, branches, conversation) {
  const known = branches.filter(({ version_of: of }) => of === conversation || of === null || of === undefined); // older records do not say
  const firsts = new Map(known.filter((one) => one.first).map((one) => [one.first, one]));
  const root = (queryId) => (firsts.has(queryId) ? root(firsts.get(queryId).before) : queryId);
  const original = turn.copy_of ?? turn.query_id;
  const first = root(original);
  const others = known.filter((one) => one.first && root(one.before) === first);
  if (!others.length) return { versions: [], at: 0 };
  const origin = known.find((one) => one.before === first).branched_from;
  const isVersion = known.some((one) => one.session_id === origin || one.version_of == null);
  const versions = [{ session_id: isVersion ? origin : conversation, query_id: first }, ...others.map((one) => ({ session_id: one.session_id, query_id: one.first }))];
  return { versions, at: Math.max(0, versions.findIndex((one) => one.query_id === original)) };
}

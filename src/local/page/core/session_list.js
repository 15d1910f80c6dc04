/**
 * The list of conversations: a plain map by id, and how it is shown. No clock: `now` is given, in seconds.
 * @typedef {import("../types/shapes.js").Session} Session
 */

/** The list with one conversation added or changed. @param {Map<string, Session>} list @param {Partial<Session>} row */
export function withSession(list, row) {
  const next = new Map(list);
  const before = list.get(row.session_id);
  const known = Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));
  next.set(row.session_id, { ...before, ...known });
  return next;
}

/** The list without one. @param {Map<string, Session>} list */
export function withoutSession(list, sessionId) {
  const next = new Map(list);
  next.delete(sessionId);
  return next;
}

/** The list as it was read, and over it what was heard while it was. @param {Map<string, Session>} list
 * @param {Map<string, Session>} before @param {Map<string, Session>} now what was known when the reading began and ended */
export function withChanges(list, before, now) {
  const changed = [...now.values()].filter((row) => before.get(row.session_id) !== row);
  const gone = [...before.keys()].filter((id) => !now.has(id));
  return changed.reduce(withSession, gone.reduce(withoutSession, list));
}

/** Of each conversation the version that was changed last. @param {Iterable<Session>} sessions */
export function conversationsIn(sessions) {
  const latest = new Map();
  for (const session of sessions) {
    const id = session.conversation ?? session.session_id;
    const known = latest.get(id);
    if (!known || byRecency(session, known) < 0) latest.set(id, session);
  }
  return [...latest.values()];
}

/**
 * What is listed: everything, or what is archived, or what has a tag.
 * @typedef {{kind: "all"} | {kind: "archived"} | {kind: "tag", tag: string}} Choice
 */

/** The user whose conversation this is, if that is another one than the owner. @param {Partial<Session>} session */
export function guestOf({ user_id: user = null }) {
  return user && user !== "owner" ? user : "";
}

/** The conversations of a choice. @param {Iterable<Session>} sessions @param {Choice} choice */
export function chosenOf(sessions, choice) {
  return [...sessions].filter((one) => Boolean(one.archived) === (choice.kind === "archived") && (choice.kind !== "tag" || one.tags?.includes(choice.tag)));
}

/** The folders by name, with what is known to be in them: `names` are those that there are. @param {Iterable<Session>} sessions
 * @param {Iterable<string>} names @returns {[string, Session[]][]} */
export function inFolders(sessions, names) {
  const folders = new Map([...names].map((name) => [name, []]));
  for (const session of conversationsIn(sessions).sort(byRecency)) {
    if (session.folder) folders.set(session.folder, [...(folders.get(session.folder) ?? []), session]);
  }
  return [...folders].sort(([one], [other]) => one.localeCompare(other));
}

/** "a, b,a" → ["a", "b"]. @param {string} text */
export function tagsIn(text) {
  return [...new Set(text.split(",").map((tag) => tag.trim()).filter(Boolean))];
}

/** Groups with a heading each: pinned, then by the day of the last change. @param {Iterable<Session>} sessions */
export function grouped(sessions, now) {
  const groups = new Map();
  for (const session of conversationsIn(sessions).sort(byRecency)) {
    if (session.folder) continue;
    const heading = session.pinned ? "Pinned" : headingOf(session.updated_at ?? session.started_at ?? now, now);
    groups.set(heading, [...(groups.get(heading) ?? []), session]);
  }
  const pinned = groups.get("Pinned");
  groups.delete("Pinned");
  return [...(pinned ? [["Pinned", pinned]] : []), ...groups];
}

function byRecency(one, other) {
  return (other.updated_at ?? 0) - (one.updated_at ?? 0) || (one.session_id < other.session_id ? -1 : 1);
}

function headingOf(seconds, now) {
  const days = Math.round((dayOf(now) - dayOf(seconds)) / 86_400_000);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return "This week";
  if (days < 31) return "This month";
  return new Date(seconds * 1000).toLocaleDateString(undefined, { month: "long", year: "numeric" });
}

function dayOf(seconds) {
  const day = new Date(seconds * 1000);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate()).getTime();
}

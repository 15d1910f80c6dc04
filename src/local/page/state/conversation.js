/** Conversations with their turns: loaded from the record, then kept up to date by events. */

import { request } from "../net/api.js";
import { signal } from "../html.js";
import { after, asked, recorded } from "../core/turn.js";

const PAGE = 50;
const KEPT = 8; // conversations in memory besides those with open queries

const conversations = new Map();

/** One conversation: `order` of its query ids, a signal for each turn. */
class Conversation {
  constructor(sessionId) {
    this.id = sessionId;
    this.order = signal([]);
    this.turns = new Map();
    this.state = signal("new"); // new, loading, ready, failed
    this.trouble = signal(null);
    this.before = signal(null); // where earlier turns begin, null where there are none
    this.after = signal(null); // where later ones do, while a place far back is shown
    this.context = signal(null);
    this.branches = signal([]);
    this.about = signal(null); // what the record says of the session: title, model, settings, the conversation it is a version of
  }

  /** The signal of a turn, made where it is not known. */
  turn(queryId, make) {
    if (!this.turns.has(queryId)) {
      if (!make) return null;
      this.turns.set(queryId, signal(make()));
      this.order.value = [...this.order.value, queryId];
    }
    return this.turns.get(queryId);
  }

  get open() {
    return [...this.turns.values()].map((turn) => turn.value).filter((turn) => turn.status === "open").map((turn) => turn.query_id);
  }

  get ended() {
    return this.order.peek().filter((id) => this.turns.get(id).peek().status !== "open");
  }

  /** Put turns of the record before what is known, or instead of the `past`; what was asked since stays behind them. */
  put(rows, past = []) {
    const ids = rows.map((row) => row.query_id);
    for (const row of rows) this.merge(row);
    this.order.value = [...ids, ...this.order.value.filter((id) => !ids.includes(id) && !past.includes(id))];
  }

  merge(row) {
    const fresh = recorded(row, this.id);
    const known = this.turns.get(row.query_id);
    if (!known) this.turns.set(row.query_id, signal(fresh));
    else if (fresh.status !== "open" || isNews(known.peek())) known.value = { ...known.peek(), ...fresh };
  }

  drop(queryId) {
    this.order.value = this.order.value.filter((id) => id !== queryId);
    this.turns.delete(queryId);
  }
}

/** Whether less of an open turn was received than is recorded. */
function isNews(known) {
  return known.status === "open" && !known.attempt;
}

/** @param {string} sessionId @returns {Conversation} */
export function conversationOf(sessionId) {
  const there = conversations.get(sessionId) ?? new Conversation(sessionId);
  conversations.delete(sessionId);
  conversations.set(sessionId, there); // the last is the one used last
  for (const [id, one] of conversations) {
    if (conversations.size <= KEPT) break;
    if (id !== sessionId && !one.open.length) conversations.delete(id);
  }
  return there;
}

/** Whether there can be a conversation of that id: addresses are typed, too. */
export function isId(text) {
  return /^[A-Za-z0-9._:~-]{1,128}$/.test(text);
}

/** Every conversation that is in memory. */
export function all() {
  return [...conversations.values()];
}

/** A conversation has got another version: those of the same origin show it. */
export function noteBranch(branch) {
  for (const one of conversations.values()) {
    const known = one.branches.peek();
    const isOfFamily = one.id === branch.branched_from || known.some((other) => [other.branched_from, other.session_id].includes(branch.branched_from));
    if (isOfFamily && !known.some((other) => other.session_id === branch.session_id)) one.branches.value = [...known, branch];
  }
}

/** The record may not know yet what was just asked first in a version. */
function withFirsts(branches, known) {
  return branches.map((one) => (one.first ? one : { ...one, first: known.find((other) => other.session_id === one.session_id)?.first ?? null }));
}

export function forget(sessionId) {
  conversations.delete(sessionId);
}

/** Load the latest turns. Leaves `state` and `trouble`; raises nothing. */
export async function load(conversation) {
  if (conversation.state.peek() === "loading") return;
  if (!isId(conversation.id)) {
    conversation.trouble.value = { kind: "not_found" };
    conversation.state.value = "failed";
    return;
  }
  conversation.state.value = "loading";
  const past = conversation.ended; // an answer may end before the record comes that has not got its question yet
  try {
    const [page, session] = await Promise.all([turnsOf(conversation.id), request("GET", `/sessions/${conversation.id}`)]);
    conversation.put(page.turns, past);
    conversation.before.value = page.before ?? null;
    conversation.after.value = null;
    conversation.context.value = session.context ?? null;
    conversation.branches.value = withFirsts(session.branches ?? [], conversation.branches.peek());
    const { title, model, settings, branched_from, conversation: versionOf } = session;
    conversation.about.value = { title, model, settings, branched_from, conversation: versionOf };
    conversation.trouble.value = null;
    conversation.state.value = "ready";
  } catch (failure) {
    const isUnknown = failure.kind === "not_found" && conversation.order.value.length > 0; // it is asked first just now
    conversation.trouble.value = isUnknown ? null : failure;
    conversation.state.value = isUnknown ? "ready" : "failed";
  }
}

/** Load the turns before those that are known; `arrived` is called when they are about to be shown. */
export async function loadEarlier(conversation, arrived = () => {}) {
  const before = conversation.before.peek();
  if (!before) return;
  const page = await turnsOf(conversation.id, `&before=${encodeURIComponent(before)}`);
  arrived();
  conversation.put(page.turns);
  conversation.before.value = page.before ?? null;
}

/** Load the turns after those that are shown, where these are far back. */
export async function loadLater(conversation) {
  const after = conversation.after.peek();
  if (!after) return;
  const page = await turnsOf(conversation.id, `&after=${encodeURIComponent(after)}`);
  for (const row of page.turns) conversation.merge(row);
  conversation.order.value = [...new Set([...conversation.order.value, ...page.turns.map((row) => row.query_id)])];
  conversation.after.value = page.after ?? null;
}

/** Show the turns around one, instead of those that are shown. */
export async function loadAround(conversation, queryId) {
  const page = await turnsOf(conversation.id, `&around=${encodeURIComponent(queryId)}`);
  for (const row of page.turns) conversation.merge(row);
  conversation.order.value = page.turns.map((row) => row.query_id);
  conversation.before.value = page.before ?? null;
  conversation.after.value = page.after ?? null;
}

function turnsOf(sessionId, more = "") {
  return request("GET", `/sessions/${encodeURIComponent(sessionId)}/turns?limit=${PAGE}${more}`);
}

/** When a turn that was asked here has ended; the record says it more exactly. */
function timed(before, turn) {
  const hasEnded = before.status === "open" && turn.status !== "open";
  return hasEnded && turn.created_at && !turn.finished_at ? { ...turn, finished_at: Date.now() / 1000 } : turn;
}

/** Take in one event of a query, if its conversation is in memory. */
export function hear({ query_id, session_id, event, data }) {
  const conversation = conversations.get(session_id) ?? all().find((one) => one.turns.has(query_id));
  const turn = conversation?.turn(query_id, data?.query ? () => asked(query_id, session_id, data.query) : null);
  if (!turn) return null;
  const before = turn.peek();
  turn.value = timed(before, after(before, event, data));
  if (turn.peek().usage?.context) conversation.context.value = turn.peek().usage.context;
  return { conversation, before, after: turn.peek() };
}

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
    this.before = signal(null);
    this.context = signal(null);
    this.branches = signal([]);
    this.branchedFrom = signal(null);
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
    return this.order.value.filter((id) => this.turns.get(id).value.status === "open");
  }

  /** Put turns of the record before or instead of what is known; what was asked since stays behind them. */
  put(rows, where) {
    const ids = rows.map((row) => row.query_id);
    for (const row of rows) this.merge(row);
    const others = this.order.value.filter((id) => !ids.includes(id));
    if (where === "before") this.order.value = [...ids, ...others];
    else this.order.value = [...ids, ...others.filter((id) => this.turns.get(id).value.status === "open")];
  }

  merge(row) {
    const fresh = recorded(row, this.id);
    const known = this.turns.get(row.query_id);
    if (!known) this.turns.set(row.query_id, signal(fresh));
    else if (fresh.status !== "open" || !known.peek().attempt) known.value = { ...known.peek(), ...fresh };
  }

  drop(queryId) {
    this.order.value = this.order.value.filter((id) => id !== queryId);
    this.turns.delete(queryId);
  }
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

/** Every conversation that is in memory. */
export function all() {
  return [...conversations.values()];
}

export function forget(sessionId) {
  conversations.delete(sessionId);
}

/** Load the latest turns. Leaves `state` and `trouble`; raises nothing. */
export async function load(conversation, isNew = false) {
  if (conversation.state.peek() === "loading") return;
  conversation.state.value = "loading";
  try {
    const [page, session] = await Promise.all([turnsOf(conversation.id), request("GET", `/sessions/${conversation.id}`)]);
    conversation.put(page.turns, "instead");
    conversation.before.value = page.before ?? null;
    conversation.context.value = session.context ?? null;
    conversation.branches.value = session.branches ?? [];
    conversation.branchedFrom.value = session.branched_from ?? null;
    conversation.trouble.value = null;
    conversation.state.value = "ready";
  } catch (failure) {
    const isUnknown = failure.kind === "not_found" && (isNew || conversation.order.value.length);
    conversation.trouble.value = isUnknown ? null : failure;
    conversation.state.value = isUnknown ? "ready" : "failed";
  }
}

/** Load the turns before those that are known. */
export async function loadEarlier(conversation) {
  const before = conversation.before.peek();
  if (!before) return;
  const page = await turnsOf(conversation.id, `&before=${encodeURIComponent(before)}`);
  conversation.put(page.turns, "before");
  conversation.before.value = page.before ?? null;
}

/** Load back to one turn. */
export async function loadUpTo(conversation, queryId) {
  while (!conversation.turns.has(queryId) && conversation.before.peek()) await loadEarlier(conversation);
}

function turnsOf(sessionId, more = "") {
  return request("GET", `/sessions/${encodeURIComponent(sessionId)}/turns?limit=${PAGE}${more}`);
}

/** Take in one event of a query, if its conversation is in memory. */
export function hear({ query_id, session_id, event, data }) {
  const conversation = conversations.get(session_id) ?? all().find((one) => one.turns.has(query_id));
  const turn = conversation?.turn(query_id, data?.query ? () => asked(query_id, session_id, data.query) : null);
  if (!turn) return null;
  const before = turn.peek();
  turn.value = after(before, event, data);
  if (turn.peek().usage?.context) conversation.context.value = turn.peek().usage.context;
  return { conversation, before, after: turn.peek() };
}

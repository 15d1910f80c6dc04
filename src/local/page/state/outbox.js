/**
 * Questions on their way. Each is kept until the API has it on record, through reloads and while nobody answers, and
 * sent with one query_id, so that it is asked once.
 */

import { request } from "../net/api.js";
import { asked } from "../core/turn.js";
import { conversationOf } from "./conversation.js";
import { signal } from "../html.js";

const KEPT_AS = "local2.outbox";
const ACCEPTED_SECONDS = 20; // the API says after 10 that nobody has confirmed it; a longer silence is nobody's answer

/** What is not accepted yet, by query_id: `{query, attachments, …, trouble}`. */
export const outbox = signal(read());

/** Ask. Returns at once; the turn is there to be seen. */
export function ask(question) {
  const turn = asked(question.query_id, question.session_id, question.query, {
    attachments: question.files ?? [],
    created_at: Date.now() / 1000,
    phase: "sending",
  });
  conversationOf(question.session_id).turn(question.query_id, () => turn);
  keep({ ...question, trouble: null });
  void deliver(question.query_id);
}

/** Show what a reload has left in the outbox where it belongs, and send it. */
export function resume() {
  for (const question of outbox.peek().values()) {
    const make = () => asked(question.query_id, question.session_id, question.query, { attachments: question.files ?? [], phase: "sending" });
    conversationOf(question.session_id).turn(question.query_id, make);
    void deliver(question.query_id);
  }
}

/** Take a question back that is not known to be accepted. It may have arrived, and is cancelled for that case.
 * @returns {boolean} whether there was one */
export function takeBack(queryId) {
  const question = outbox.peek().get(queryId);
  if (!question) return false;
  drop(queryId);
  conversationOf(question.session_id).drop(queryId);
  const sending = underway.get(queryId);
  sending?.abort();
  if (sending) void request("POST", `/query/${queryId}/cancel`).catch(() => {}); // not_found: it has not arrived
  return true;
}

const underway = new Map();

/** Send one; what passes is tried again by itself. */
export async function deliver(queryId) {
  const question = outbox.peek().get(queryId);
  if (!question || underway.has(queryId)) return;
  const sending = new AbortController();
  underway.set(queryId, sending);
  try {
    await request("POST", "/query", bodyOf(question), { signal: AbortSignal.any([sending.signal, AbortSignal.timeout(ACCEPTED_SECONDS * 1000)]) });
    drop(queryId);
    accept(question);
  } catch (failure) {
    if (!sending.signal.aborted) refuse(question, failure);
  } finally {
    underway.delete(queryId);
  }
}

function bodyOf({ query, query_id, session_id, files = [], incognito = false, profile = "", mode = "", model = "", settings = null }) {
  return { query, query_id, session_id, attachments: files.map((file) => file.id), incognito, wait: false, ...(profile ? { profile } : {}), ...(mode ? { mode } : {}), ...(model ? { model } : {}), ...(settings ? { settings } : {}) };
}

function accept(question) {
  const turn = conversationOf(question.session_id).turn(question.query_id);
  if (turn && turn.peek().phase === "sending") turn.value = { ...turn.peek(), phase: "waiting" };
  followed?.(question);
}

let followed = null;

/** Call `hear(question)` for each that was accepted. */
export function onAccepted(hear) {
  followed = hear;
}

function refuse(question, failure) {
  if (failure.passes) {
    keep({ ...question, trouble: { kind: failure.kind, message: failure.message, passes: true } });
    setTimeout(() => void deliver(question.query_id), Math.max(1, failure.retryAfter) * 1000);
    return;
  }
  keep({ ...question, trouble: { kind: failure.kind, message: failure.message, passes: false } });
}

function keep(question) {
  const next = new Map(outbox.peek());
  next.set(question.query_id, question);
  write(next);
}

function drop(queryId) {
  const next = new Map(outbox.peek());
  next.delete(queryId);
  write(next);
}

/** Incognito questions are kept in this tab alone. */
function write(questions) {
  outbox.value = questions;
  for (const { store, wanted } of [{ store: localStorage, wanted: false }, { store: sessionStorage, wanted: true }]) {
    try {
      const kept = [...questions.values()].filter((one) => Boolean(one.incognito) === wanted);
      if (kept.length) store.setItem(KEPT_AS, JSON.stringify(kept));
      else store.removeItem(KEPT_AS);
    } catch {
      // a full store: the question is in memory, and on its way
    }
  }
}

function read() {
  const kept = [];
  for (const store of [() => localStorage, () => sessionStorage]) {
    try {
      kept.push(...JSON.parse(store().getItem(KEPT_AS) ?? "[]"));
    } catch {
      // what cannot be read is not there
    }
  }
  return new Map(kept.filter((one) => one?.query_id && one.query).map((one) => [one.query_id, one]));
}

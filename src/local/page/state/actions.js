/** What a person does: go somewhere, ask, stop, ask again, rate. */

import { batch } from "../html.js";
import { request } from "../net/api.js";
import { fresh } from "../net/ids.js";
import { isUntouched } from "../core/turn.js";
import { conversationOf, load, loadAround, noteBranch } from "./conversation.js";
import { changeDraft, draftOf } from "./drafts.js";
import { ask, takeBack } from "./outbox.js";
import { currentId, isIncognito, isRailOpen, path, screen, selected, sessions, spoken, tell } from "./store.js";
import { follow } from "./following.js";
import { inspect, moment } from "./inspection.js";
import { settingsOf, wantedMode, wantedModel, wantedSettings } from "./choices.js";

/** Show a conversation, null for a new one. */
export function go(sessionId, queryId = null) {
  const hash = sessionId ? `#/c/${encodeURIComponent(sessionId)}${queryId ? `/${encodeURIComponent(queryId)}` : ""}` : "#/";
  if (location.hash !== hash) {
    history.pushState(null, "", hash);
    readAddress(); // at once: a key that is typed now is for what is shown then
  }
  isRailOpen.value = false;
}

/** Bring one turn of a conversation into view; where it is not loaded, the turns around it are. */
export async function goToTurn(sessionId, queryId) {
  go(sessionId, queryId);
  const conversation = conversationOf(sessionId);
  if (!conversation.turns.has(queryId)) await loadAround(conversation, queryId);
  requestAnimationFrame(() => {
    /** @type {HTMLElement | null} */
    const turn = document.querySelector(`[data-query="${CSS.escape(queryId)}"]`);
    turn?.scrollIntoView({ block: "start" });
    turn?.focus({ preventScroll: true });
  });
}

/** Take what the address says. */
export function readAddress() {
  const [, place, session, whole, ...rest] = location.hash.split("/");
  const [turn, after] = whole?.split("@") ?? [];
  const isChat = !place || place === "c";
  show(isChat ? "chat" : decoded(place), isChat ? [] : [session, whole, ...rest].filter(Boolean).map(decoded));
  if (!isChat) return;
  const id = place === "c" && session ? decoded(session) : null;
  if (id && id === currentId.peek()) {
    if (turn) void goToTurn(id, decoded(turn));
    if (after) showMoment(id, decoded(turn), after);
    return;
  }
  currentId.value = id;
  selected.value = null;
  if (id && after) showMoment(id, decoded(turn), after);
  if (id) {
    const conversation = conversationOf(id);
    if (conversation.state.peek() === "new" || conversation.state.peek() === "failed") void open(conversation);
  }
  follow();
}

/** Open the inspector where an answer was so many milliseconds after its beginning. */
function showMoment(sessionId, queryId, milliseconds) {
  moment.value = { queryId, after: Number(milliseconds) / 1000 || 0 };
  inspect({ kind: "turn", sessionId, queryId }, "time");
}

/** Whether the screen was changed and its heading is to have the focus. */
let isArriving = false;
let isFirst = true;

function show(id, rest) {
  if (id !== screen.peek() && !isFirst) isArriving = true;
  isFirst = false;
  batch(() => {
    screen.value = id;
    if (rest.join("/") !== path.peek().join("/")) path.value = rest;
  });
}

/** Give the focus to the heading of a screen that somebody has gone to. */
export function arrive() {
  if (!isArriving) return;
  isArriving = false;
  /** @type {HTMLElement | null} */
  const heading = document.querySelector("main h1");
  if (heading) heading.tabIndex = -1;
  heading?.focus();
}

/** What has the focus instead, once the screen that is gone to is complete. */
let wanted = "";

/** @param {string} id of an element that a screen has */
export function arriveAt(id) {
  wanted = id;
}

/** Called when a screen and all in it is drawn. */
export function settle() {
  if (wanted) document.getElementById(wanted)?.focus();
  wanted = "";
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Load a conversation and follow what is open in it. */
export async function open(conversation) {
  follow();
  await load(conversation);
  follow();
}

/** Whether what is said in a conversation is to be forgotten. */
export function isSecret(sessionId) {
  return sessionId ? Boolean(sessions.peek().get(sessionId)?.incognito) || secrets.has(sessionId) : isIncognito.peek();
}

const secrets = new Set();

/** Send what is in the composer. */
export async function submit() {
  const from = currentId.peek();
  const draft = draftOf(from);
  const text = draft.text.trim();
  if (!text || draft.files.some((file) => file.state === "sending")) return;
  const incognito = isSecret(from);
  let sessionId = from;
  const queryId = fresh("q");
  if (draft.replaces && from) sessionId = await versionAt(from, draft.replaces, queryId);
  if (draft.replaces && !sessionId) return;
  sessionId ??= fresh("c");
  if (incognito) secrets.add(sessionId);
  const conversation = conversationOf(sessionId);
  if (conversation.after.peek()) await load(conversation);
  if (sessionId !== from && !draft.replaces) conversation.state.value = "ready";
  ask({ query: text, query_id: queryId, session_id: sessionId, files: draft.files.filter((file) => file.id), incognito, ...answering(from, sessionId) });
  changeDraft(from, { text: "", files: [], replaces: null });
  if (sessionId !== from) go(sessionId);
  follow();
}

/** Another version of a conversation, which begins with the turns before one, and goes on with the query `first`; null
 * where that failed, as was told. */
async function versionAt(sessionId, queryId, first) {
  try {
    const { session_id: id, branched_from: from, conversation } = await request("POST", `/sessions/${sessionId}/branch`, { before: queryId, version: true });
    noteBranch({ session_id: id, branched_from: from.session_id, before: from.query_id, version_of: conversation, first });
    conversationOf(id).branches.value = conversationOf(sessionId).branches.peek();
    conversationOf(id).about.value = { ...conversationOf(sessionId).about.peek(), conversation };
    return id;
  } catch (failure) {
    tell(`The question could not be asked again: ${failure.message}`);
    return null;
  }
}

/** Ask the same question again, as another version of the conversation; with the model that is chosen now. */
export async function regenerate(turn) {
  const from = turn.session_id;
  const queryId = fresh("q");
  const sessionId = await versionAt(from, turn.query_id, queryId);
  if (!sessionId) return;
  if (isSecret(from)) secrets.add(sessionId);
  ask({ query: turn.query, query_id: queryId, session_id: sessionId, files: turn.attachments, incognito: isSecret(from), ...answering(from, sessionId) });
  go(sessionId);
  follow();
}

/** A new conversation that begins with everything up to a turn and with it. */
export async function branchFrom(turn) {
  try {
    const { session_id: id } = await request("POST", `/sessions/${turn.session_id}/branch`, { through: turn.query_id });
    if (isSecret(turn.session_id)) secrets.add(id);
    go(id);
    spoken.value = "a new conversation, which begins with the turns up to here";
    document.getElementById("question")?.focus();
  } catch (failure) {
    tell(`The conversation could not be branched: ${failure.message}`);
  }
}

/** What of a question says how it is answered. */
function answering(from, sessionId) {
  return { profile: settingsOf(from).profile ?? "", mode: wantedMode(from, sessionId), model: wantedModel(from, sessionId), settings: wantedSettings(from, sessionId) };
}

/** Stop an answer; one that was not accepted yet is taken back. */
export async function stop(queryId) {
  if (takeBack(queryId)) return;
  try {
    await request("POST", `/query/${queryId}/cancel`);
  } catch (failure) {
    if (failure.kind !== "not_found") tell(`The answer could not be stopped: ${failure.message}`);
  }
}

/** Put a question back into the composer: to ask it again, changed, or one that waits, in its stead. */
export async function edit(turn) {
  const isWaiting = isUntouched(turn);
  if (isWaiting) await stop(turn.query_id);
  const files = turn.attachments.map((file) => ({ ...file, key: file.id, state: "ready" }));
  changeDraft(turn.session_id, { text: turn.query, files, replaces: isWaiting ? null : turn.query_id }, !isSecret(turn.session_id));
  document.getElementById("question")?.focus();
}

/** Ask the same again, after a failure. */
export function retry(turn) {
  ask({ query: turn.query, query_id: fresh("q"), session_id: turn.session_id, files: turn.attachments, incognito: isSecret(turn.session_id), ...answering(turn.session_id, turn.session_id) });
  follow();
}

/** @param {1 | -1 | null} rating */
export async function rate(turn, rating) {
  const known = conversationOf(turn.session_id).turn(turn.query_id);
  const before = turn.scores.rating;
  const put = (value) => (known.value = { ...known.peek(), scores: { ...known.peek().scores, rating: value } });
  put(rating);
  try {
    await request("POST", "/feedback", { query_id: turn.copy_of ?? turn.query_id, rating });
  } catch (failure) {
    put(before);
    tell(`Your rating was not saved: ${failure.message}`);
  }
}

/** How the questions of a conversation are answered: by which model, with which settings; what was chosen here and not
 * yet asked. */

import { request } from "../net/api.js";
import { signal } from "../html.js";
import { conversationOf } from "./conversation.js";
import { changeSession } from "./listing.js";
import { currentId, health, sessions, tell } from "./store.js";

const DEFAULT = "default";

/** `{models, default}` of the models that can be chosen, null before they were read. */
export const offered = signal(null);
/** By conversation, under "" the next new one: what its next question asks for. */
export const chosen = signal(new Map());

/** Reload the list of models. Throws an `ApiFailure`. */
export async function loadOffered() {
  const found = await request("GET", "/models");
  offered.value = { models: found.models.filter((one) => one.chat), default: found.default };
}

/** The id of the model that answers in a conversation. */
export function modelOf(sessionId) {
  const wanted = chosen.value.get(sessionId ?? "") ?? aboutOf(sessionId)?.model ?? DEFAULT;
  return wanted === DEFAULT ? defaultModel() : wanted;
}

/** The model that answers where none is chosen: /health names it to the owner, the list of models to other users. */
export function defaultModel() {
  return health.value?.model ?? offered.value?.default ?? "";
}

/** What is known of a session: as it is listed, else as it was opened. */
function aboutOf(sessionId) {
  return sessionId ? (sessions.value.get(sessionId) ?? conversationOf(sessionId).about.value) : null;
}

/** Have a model answer in a conversation from its next question on. */
export function choose(sessionId, model) {
  chosen.value = new Map(chosen.peek()).set(sessionId ?? "", model.default ? DEFAULT : model.id);
}

/** The model to name with a question in `sessionId`, if it continues from the conversation `from`. */
export function wantedModel(from, sessionId) {
  const wanted = chosen.peek().get(from ?? "") ?? (from === sessionId ? undefined : aboutOf(from)?.model);
  if (wanted && from !== sessionId) {
    const next = new Map(chosen.peek()).set(sessionId, wanted);
    if (!from) next.delete("");
    chosen.value = next;
  }
  return wanted ?? "";
}

/** A conversation is known to have this model: what was chosen here is done. */
export function hearModel(row) {
  if (!chosen.peek().has(row.session_id) || chosen.peek().get(row.session_id) !== row.model) return;
  const next = new Map(chosen.peek());
  next.delete(row.session_id);
  chosen.value = next;
}

/** The settings of the next new conversation. @type {any} */
const ofNew = signal(null);

/** A conversation's settings: `{profile, temperature, top_p, max_tokens, instructions}`, each only where it was chosen. */
export function settingsOf(sessionId) {
  return (sessionId ? aboutOf(sessionId)?.settings : ofNew.value) ?? {};
}

/** Replace a conversation's settings. Throws an `ApiFailure`. */
export async function changeSettings(sessionId, settings) {
  if (!sessionId) return void (ofNew.value = settings);
  const { about } = conversationOf(sessionId);
  await changeSession(sessionId, { settings });
  if (about.peek()) about.value = { ...about.peek(), settings };
}

/** The settings to send with a question in `sessionId` that continues from the conversation `from`: those of a new one. */
export function wantedSettings(from, sessionId) {
  if (from || !ofNew.peek()) return null;
  const settings = ofNew.peek();
  ofNew.value = null;
  conversationOf(sessionId).about.value = { settings };
  return settings;
}

const MODES_KEPT_AS = "local2.modes";
/** The permission modes that were chosen in this tab, `{id, title}`: by conversation, under "" for the next new one. */
const modes = signal(readModes());

function readModes() {
  try {
    return new Map(JSON.parse(sessionStorage.getItem(MODES_KEPT_AS) ?? "[]"));
  } catch {
    return new Map();
  }
}

/** The mode of a conversation's next questions, null for that of the settings. @returns {{id: string, title: string} | null} */
export function modeOf(sessionId) {
  return modes.value.get(sessionId ?? "") ?? null;
}

/** @param {string | null} sessionId @param {{id: string, title: string} | null} mode */
export function chooseMode(sessionId, mode) {
  const next = new Map(modes.peek());
  next.delete(sessionId ?? "");
  if (mode) next.set(sessionId ?? "", { id: mode.id, title: mode.title });
  modes.value = next;
  sessionStorage.setItem(MODES_KEPT_AS, JSON.stringify([...next]));
}

/** The mode to name with a question in `sessionId` that continues from the conversation `from`. */
export function wantedMode(from, sessionId) {
  const mode = modeOf(from);
  if (mode && from !== sessionId) chooseMode(sessionId, mode);
  if (mode && !from) chooseMode(null, null);
  return mode?.id ?? "";
}

/** Have a profile answer in the conversation that is shown. */
export function askAs(name) {
  const { profile, ...others } = settingsOf(currentId.peek());
  const settings = name === "general" ? others : { ...others, profile: name };
  void changeSettings(currentId.peek(), settings).catch((failure) => tell(`The profile was not changed: ${failure.message}`));
  document.getElementById("question")?.focus();
}

/** Which model answers in a conversation: those that can be chosen, and what was chosen here and not yet asked. */

import { request } from "../net/api.js";
import { signal } from "../html.js";
import { health, sessions } from "./store.js";

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
  const wanted = chosen.value.get(sessionId ?? "") ?? sessions.value.get(sessionId)?.model ?? DEFAULT;
  return wanted === DEFAULT ? (health.value?.model ?? "") : wanted;
}

/** Have a model answer in a conversation from its next question on. */
export function choose(sessionId, model) {
  chosen.value = new Map(chosen.peek()).set(sessionId ?? "", model.default ? DEFAULT : model.id);
}

/** The model to name with a question in `sessionId`, if it continues from the conversation `from`. */
export function wantedModel(from, sessionId) {
  const wanted = chosen.peek().get(from ?? "") ?? (from === sessionId ? undefined : sessions.peek().get(from)?.model);
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

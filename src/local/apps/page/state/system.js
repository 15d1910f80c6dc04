/** The system itself: its models and what is fetched, its settings, its processes. All of it is the owner's. */

import { signal } from "../html.js";
import { withPull, isOver } from "../core/pulls.js";
import { request } from "../net/api.js";
import { tell } from "./store.js";

/** `{models, current}` as /models says, null before it was read. */
export const models = signal(null);
/** What kept them from being read, a sentence or null. */
export const modelsTrouble = signal(null);
/** What is being fetched, by the model's name. */
export const pulls = signal(new Map());

export async function loadModels() {
  try {
    models.value = await request("GET", "/models");
    modelsTrouble.value = null;
  } catch (failure) {
    modelsTrouble.value = failure.message;
  }
}

/** Fetch a model; what comes of it is heard on the stream. */
export async function pull(name) {
  hearPull({ name, status: "asking for it", completed: null, total: null, error: null });
  try {
    await request("POST", "/models/pull", { name });
  } catch (failure) {
    hearPull({ name, status: "failed", error: failure.message });
  }
}

/** @param {import("../core/pulls.js").Pull} event */
export function hearPull(event) {
  pulls.value = withPull(pulls.peek(), event);
  if (isOver(event) && !event.error) void loadModels();
}

/** Have another model answer. Throws an `ApiFailure`. */
export async function chooseModel(name) {
  const answered = await request("PUT", "/models/current", { name });
  models.value = { ...models.peek(), ...answered, current: answered?.current ?? name };
}

/** Start a participant anew. */
export async function restart(name) {
  try {
    await request("POST", `/participants/${encodeURIComponent(name)}/restart`);
    tell(`${name} is being started again.`);
  } catch (failure) {
    tell(`${name} was not restarted: ${failure.message}`);
  }
}

/** The system itself: its models and what is fetched, its settings, its processes. All of it is the owner's. */

import { signal } from "../html.js";
import { withPull } from "../core/pulls.js";
import { request } from "../net/api.js";
import { tell } from "./store.js";

/** `{models, current, pulls, note}` as /models says, null before it was read. */
export const models = signal(null);
/** What kept them from being read, a sentence or null. */
export const modelsTrouble = signal(null);
/** What is being fetched, by the model's name. */
export const pulls = signal(new Map());

/** A request for which the owner has to be signed in, on the owner's machine too. Throws an `ApiFailure` that says how. */
export function ownerRequest(method, path, body) {
  return request(method, path, body).catch((failure) => {
    if (failure.kind === "unauthorized") failure.message = "sign in first, at the top of the page: enter the code that `local2 code` prints.";
    throw failure;
  });
}

export async function loadModels() {
  try {
    models.value = await request("GET", "/models");
    for (const one of models.value.pulls ?? []) pulls.value = withPull(pulls.peek(), one);
    modelsTrouble.value = null;
  } catch (failure) {
    modelsTrouble.value = failure.message;
  }
}

/** Fetch a model; what comes of it is heard on the stream. */
export async function pull(name) {
  hearPull({ name, state: "running", status: "starting the download", completed: null, total: null, error: null });
  try {
    await ownerRequest("POST", "/models/pull", { name });
  } catch (failure) {
    hearPull({ name, state: "failed", status: "", error: { kind: failure.kind, message: failure.message } });
  }
}

/** Fetch it no longer; what has come of it is kept. */
export async function stopPull(name) {
  await ownerRequest("POST", "/models/pull/stop", { name }).catch((failure) => tell(`The download of ${name} could not be stopped: ${failure.message}`));
}

/** @param {import("../core/pulls.js").Pull} event */
export function hearPull(event) {
  pulls.value = withPull(pulls.peek(), event);
  if (event.state === "done") void loadModels();
}

/** Have another model answer, as a rule from the next start on; returns whether that start is needed. Throws an
 * `ApiFailure`. */
export async function chooseModel(name) {
  const { current = name, restart_needed: waits = [] } = (await ownerRequest("PUT", "/models/current", { name })) ?? {};
  models.value = { ...models.peek(), current };
  void loadModels();
  return waits.length > 0;
}

const DONE = { start: "started", stop: "stopped", restart: "restarted" };

/** Start, stop or restart a participant. @param {"start" | "stop" | "restart"} verb */
export async function control(verb, name) {
  try {
    await ownerRequest("POST", `/participants/${encodeURIComponent(name)}/${verb}`);
    if (verb === "restart") tell(name === "api" ? "The API is restarting." : `${name} was restarted.`); // the API answers before its own restart
  } catch (failure) {
    tell(`${name} was not ${DONE[verb]}: ${failure.message}`);
  }
}

/** Restart a participant. */
export const restart = (name) => control("restart", name);

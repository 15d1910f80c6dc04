/** Requests to LoCAL2. Every failure is an `ApiFailure` that says what was wrong. */

import { proof, refused } from "./token.js";

/** What a request came to that gave no answer; `kind` is the API's, or "offline" where nobody answered. */
export class ApiFailure extends Error {
  /** @param {string} kind @param {string} message @param {number} status @param {number} retryAfter seconds */
  constructor(kind, message, status = 0, retryAfter = 0) {
    super(message);
    this.kind = kind;
    this.status = status;
    this.retryAfter = retryAfter;
    this.key = ""; // of the setting that is wrong
  }

  /** Whether the same request may succeed soon, without anybody doing something. */
  get passes() {
    return this.kind !== "budget_spent" && [0, 429, 503].includes(this.status);
  }
}

/** The JSON that a request is answered with. @param {string} method @param {string} path
 * @param {any} [body] @param {{signal?: AbortSignal, file?: Blob}} [more] */
export async function request(method, path, body, more = {}) {
  const response = await send(method, path, body, more);
  return response.status === 204 ? null : response.json();
}

/** The response itself, once its status is a good one. @param {string} method @param {string} path
 * @param {any} [body] @param {{signal?: AbortSignal, file?: Blob, headers?: Record<string, string>}} [more] */
export async function send(method, path, body, { signal, file, headers } = {}) {
  let response;
  const shown = proof();
  try {
    response = await fetch(path, {
      method,
      signal,
      cache: "no-store",
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...shown, ...headers },
      body: file ?? (body === undefined ? undefined : JSON.stringify(body)),
    });
  } catch (error) {
    if (signal?.aborted && signal.reason?.name !== "TimeoutError") throw error;
    throw new ApiFailure("offline", "LoCAL2 does not answer.");
  }
  if (response.status === 401 && shown["x-local2-key"]) refused(shown["x-local2-key"]);
  if (!response.ok) throw await failureOf(response);
  return response;
}

async function failureOf(response) {
  const wait = Number(response.headers.get("retry-after")) || 0;
  const said = await response.json().catch(() => null);
  const { kind = "error", message = `LoCAL2 answered with status ${response.status}.`, key = "" } = said?.error ?? {};
  return Object.assign(new ApiFailure(kind, message, response.status, wait), { key });
}

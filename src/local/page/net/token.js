/**
 * Signing in. The API exchanges a one-time code or a token for an HttpOnly cookie and a key. The key is kept here, in the
 * storage of this origin, and sent with each request; the cookie counts only together with it.
 */

import { signal } from "../html.js";

const KEPT_AS = "local2.sign_in";
const SECONDS = 10;

/** How this browser is signed in, or null. @type {{value: {key: string, user_id: string, owner: boolean} | null}} */
export const signIn = signal(kept());
/** Whether the API answers nobody who is not signed in. */
export const isRefused = signal(false);
/** Why signing in did not work, a sentence; empty where it did. */
export const signInTrouble = signal("");

/** The header that shows the key, where this browser is signed in. */
export function proof() {
  return signIn.value ? { "x-local2-key": signIn.value.key } : {};
}

/** Sign in with a code or a token; whether it worked. @param {string} secret */
export async function enter(secret) {
  const answer = await post("/sign-in", { secret });
  signInTrouble.value = answer.trouble ?? "";
  if (answer.key) keep({ key: answer.key, user_id: answer.user_id, owner: answer.owner });
  return Boolean(answer.key);
}

/** Sign this browser out, or all of this user's, and show the page anew. @param {boolean} everywhere */
export async function signOut(everywhere) {
  const { trouble } = await post("/sign-out", { everywhere });
  if (trouble) return trouble;
  keep(null);
  location.reload();
  return "";
}

/** The API does not know, or no longer, who has made a request. @param {string | undefined} key that it has shown */
export function refused(key) {
  if (!key) isRefused.value = true;
  else if (signIn.value?.key === key) {
    keep(null);
    location.reload(); // on the owner's machine the page does without signing in
  }
}

/** @returns {Promise<any>} */
async function post(path, body) {
  const headers = { "content-type": "application/json", ...proof() };
  try {
    const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), cache: "no-store", signal: AbortSignal.timeout(SECONDS * 1000) });
    const answer = await response.json();
    return response.ok ? answer : { trouble: answer.error?.message ?? `LoCAL2 answered with status ${response.status}.` };
  } catch {
    return { trouble: "LoCAL2 does not answer." };
  }
}

function keep(value) {
  signIn.value = value;
  try {
    if (value) localStorage.setItem(KEPT_AS, JSON.stringify(value));
    else localStorage.removeItem(KEPT_AS);
  } catch {
    // it is kept for as long as the page is open
  }
}

function kept() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT_AS) ?? "null");
    return typeof found?.key === "string" ? found : null;
  } catch {
    return null;
  }
}

// The other tabs of this browser are signed in and out with this one.
globalThis.addEventListener?.("storage", ({ key }) => key === KEPT_AS && location.reload());

// Neither stays in the address. A token is not taken from it: a link would sign somebody in as whoever has sent it.
const [, kind, secret] = /^#(code|token)=([\w.:~@-]+)$/.exec(location.hash) ?? [];
if (kind) history.replaceState(null, "", location.pathname + location.search);
if (kind === "code") await enter(secret);

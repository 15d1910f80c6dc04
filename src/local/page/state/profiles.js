/** Which kinds of assistants there are, and the one that is asked from now on. */

import { request } from "../net/api.js";
import { signal } from "../html.js";

/** Of all of them name and description. */
export const profiles = signal([]);
/** The name of the one that was chosen; empty for the usual one. */
export const asked = signal("");

export async function loadProfiles() {
  const found = await request("GET", "/profiles").catch(() => null); // the next look may find them
  if (found) profiles.value = found.profiles;
}

export function askAs(name) {
  asked.value = name === "general" ? "" : name;
  document.getElementById("question")?.focus();
}

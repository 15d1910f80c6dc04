/** The kinds of assistants that can answer. */

import { request } from "../net/api.js";
import { signal } from "../html.js";

/** Of all of them name and description. */
export const profiles = signal([]);

export async function loadProfiles() {
  const found = await request("GET", "/profiles").catch(() => null); // the next look may find them
  if (found) profiles.value = found.profiles;
}

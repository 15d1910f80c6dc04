/** What is not well with the system: which participant, what it does about it, where to look. */

import { html } from "../html.js";
import { troubles } from "../core/system_words.js";
import { inspect } from "../state/inspection.js";
import { health, offlineSince, participants } from "../state/store.js";

const MOST = 3;

export function SystemNote() {
  if (offlineSince.value !== null) return null;
  const found = troubles(participants.value.values());
  const { problem, notice } = health.value ?? {};
  return html`${problem ? html`<p class="bar-note warn" role="status" data-state="problem"><span><b>Problem:</b> ${problem}</span></p>` : null}
    ${found.length ? html`<p class="bar-note warn" role="status" data-state="trouble"><span><b>Problem:</b> ${found.slice(0, MOST).map((one) => one.text).join("; ")}${found.length > MOST ? ` and ${found.length - MOST} more` : ""}.</span>
      <button type="button" onClick=${() => inspect({ kind: "participant", name: found[0].name }, "story")}>Look</button></p>` : null}
    ${notice ? html`<p class="bar-note" role="status" data-state="notice"><span>${notice}</span></p>` : null}`;
}

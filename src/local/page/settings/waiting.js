/** Whom a change waits for: those that read it when they start. It is kept while the page is open. */

import { html, signal } from "../html.js";
import { Button } from "../parts/field.js";
import { tell } from "../state/store.js";
import { ownerRequest } from "../state/system.js";

const waiting = signal(/** @type {string[]} */ ([]));

/** Remember that these have to start again. @param {string[]} readers */
export function waitFor(readers) {
  waiting.value = [...new Set([...waiting.peek(), ...readers])];
}

/** Start a participant again, which then has what was saved. Throws an `ApiFailure`. */
export async function renew(name) {
  await ownerRequest("POST", `/participants/${encodeURIComponent(name)}/restart`);
  waiting.value = waiting.peek().filter((one) => one !== name);
}

/** What was saved and does not count yet. */
export function Waiting() {
  const names = waiting.value;
  if (!names.length) return null;
  const restart = (name) => renew(name).catch((failure) => tell(`${name} was not restarted: ${failure.message}`));
  const others = names.filter((name) => name !== "system");
  return html`<div class="note waiting" role="status">
    <p>Saved. ${names.includes("system") ? "Some of it takes effect after the next start of LoCAL2. " : ""}${others.length ? "The change takes effect after a restart." : ""}</p>
    ${others.length ? html`<div class="row-acts">${others.map((name) => html`<${Button} key=${name} act=${() => restart(name)}>Restart ${name}</${Button}>`)}</div>` : null}
  </div>`;
}

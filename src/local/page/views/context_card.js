/** The memories added to the prompt: facts, and exchanges of earlier conversations. */

import { html } from "../html.js";
import { contextLine, dayOf } from "../core/told.js";
import { useFold } from "../state/folds.js";
import { inspect } from "../state/inspection.js";

export function ContextCard({ context, queryId }) {
  const [isOpen, open] = useFold(`context ${queryId}`);
  const line = contextLine(context);
  if (!line) return null;
  return html`<section class="call" data-context aria-label="From your memory">
    <button type="button" class="call-head" aria-expanded=${isOpen} onClick=${() => open(!isOpen)}>
      <span class="dot done" aria-hidden="true"></span><code>memory</code><q dir="auto">${line}</q>
      <span class="push"></span>${context.recalled.some((one) => one.tainted) ? html`<span class="tag" title="It may hold untrusted content">untrusted</span>` : null}
    </button>
    ${isOpen ? html`<${Insides} context=${context} />` : null}
  </section>`;
}

function Insides({ context }) {
  const { facts, gone, recalled } = context;
  return html`<div class="insides">
    ${facts.length ? html`<h3>Known about you</h3><ul>${facts.map((fact) => html`<li key=${fact} dir="auto">${fact}</li>`)}</ul>` : null}
    ${gone?.length ? html`<h3>No longer true</h3><ul>${gone.map((fact) => html`<li key=${fact} dir="auto">${fact}</li>`)}</ul>` : null}
    ${recalled.length ? html`<h3>Recalled</h3><ul>${recalled.map((one) => html`<${Recalled} key=${one.engram_id} one=${one} />`)}</ul>` : null}
  </div>`;
}

function Recalled({ one }) {
  return html`<li><span dir="auto">“${one.query}”</span> <small>said on ${dayOf(one.asked_at)}</small>
    <button type="button" class="quiet" aria-label=${`Open the memory of ${dayOf(one.asked_at)}`} onClick=${() => inspect({ kind: "engram", engramId: one.engram_id })}>Open</button></li>`;
}

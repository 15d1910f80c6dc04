/** The numbered sources below an answer, the first of many. */

import { html, useState } from "../html.js";
import { engramOf } from "../core/sources.js";
import { moment } from "../core/words.js";
import { inspect } from "../state/inspection.js";
import { now } from "../state/store.js";

const MOST = 6;

export function Sources({ sources, turn }) {
  const [isOpen, open] = useState(false);
  if (!sources.length || turn.status === "open") return null;
  return html`<ol class="sources" aria-label="Sources">
    ${(isOpen ? sources : sources.slice(0, MOST)).map((source) => html`<li key=${source.address}><sup>${source.number}</sup> <${Source} source=${source} turn=${turn} /></li>`)}
    ${sources.length > MOST ? html`<li><button type="button" class="quiet" aria-expanded=${isOpen} onClick=${() => open(!isOpen)}>${isOpen ? "Fewer" : `${sources.length - MOST} more`}</button></li>` : null}
  </ol>`;
}

/** When something remembered was said. */
function when(source, turn) {
  const id = engramOf(source.address);
  const recall = turn.tool_calls.flatMap((call) => call.recalled ?? []).find((one) => id && one.engram_id === id);
  return recall?.asked_at ? `, ${moment(recall.asked_at, now.value)}` : "";
}

function Source({ source, turn }) {
  if (source.kind === "page") return html`<a href=${source.address} target="_blank" rel="noopener noreferrer" title=${source.address}>${source.label}</a>`;
  const engramId = engramOf(source.address);
  const show = () => inspect(engramId ? { kind: "engram", engramId } : { kind: "turn", sessionId: turn.session_id, queryId: turn.query_id }, engramId ? "story" : "sources");
  return html`<button type="button" class="quiet" title=${source.address} onClick=${show}>${source.label}${when(source, turn)}</button>`;
}

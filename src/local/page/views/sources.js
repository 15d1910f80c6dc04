/** The numbered sources below an answer, the first of many. */

import { html } from "../html.js";
import { engramOf } from "../core/sources.js";
import { moment } from "../core/words.js";
import { inspect } from "../state/inspection.js";
import { now } from "../state/store.js";
import { FoldedList } from "./folded_list.js";

const MOST = 6;

export function Sources({ sources, turn }) {
  if (!sources.length || turn.status === "open") return null;
  const row = (source) => html`<li key=${source.address}><sup>${source.number}</sup> <${Source} source=${source} turn=${turn} /></li>`;
  return html`<${FoldedList} class="sources" aria-label="Sources" rows=${sources} most=${MOST} row=${row} />`;
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

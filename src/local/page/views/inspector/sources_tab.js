/** Where an answer's facts come from: numbered as in the answer, and what was searched, opened and recalled for them. */

import { html } from "../../html.js";
import { searchesOf } from "../../core/searches.js";
import { engramOf, hostOf, sourcesOf } from "../../core/sources.js";
import { counted } from "../../core/words.js";
import { inspect } from "../../state/inspection.js";
import { Recalls } from "../recalls.js";

export function SourcesTab({ shown, turn }) {
  if (!turn) return html`<p class="empty">This answer is not loaded.</p>`;
  const sources = sourcesOf(turn);
  const isOfCall = shown.kind === "call";
  const numbered = isOfCall ? sources.filter((source) => source.calls.includes(shown.callId)) : sources;
  const { searched, opened, recalled, passedOver } = searchesOf(turn, isOfCall ? shown.callId : null);
  if (!numbered.length && !searched.length && !opened.length && !recalled.length && !passedOver.length) {
    return html`<p class="empty">${isOfCall ? "This call used no sources." : "No tool was called: the model answered from its own knowledge and this conversation."}</p>`;
  }
  const look = (call) => () => inspect({ kind: "call", sessionId: turn.session_id, queryId: turn.query_id, callId: call.call_id }, "story");
  return html`${numbered.length ? html`<h3>Sources <small>as numbered in the answer</small></h3><ol class="numbered">${numbered.map((source) => html`<${Source} key=${source.address} source=${source} turn=${turn} />`)}</ol>` : null}
    ${searched.length ? html`<h3>Searched</h3><ul class="plain-rows">${searched.map(({ call, text, links }) => html`<li key=${call.call_id}><span><code>${call.tool}</code> <q dir="auto">${text}</q>${links.length ? html` <small>${counted(links.length, "link")}</small>` : null}</span><button type="button" class="quiet" aria-label=${`Look at the search for ${text}`} onClick=${look(call)}>Look</button></li>`)}</ul>` : null}
    ${opened.length ? html`<h3>Opened</h3><ul class="plain-rows">${opened.map(({ call, address }) => html`<li key=${call.call_id}><span><${Page} address=${address} />${call.error ? html` <small class="trouble">${call.error.kind}</small>` : null}</span><button type="button" class="quiet" aria-label=${`Look at what ${address} gave`} onClick=${look(call)}>Look</button></li>`)}</ul>` : null}
    ${recalled.length ? html`<h3>Recalled</h3><${Recalls} recalled=${recalled} sources=${sources} />` : null}
    ${passedOver.length ? html`<details class="passed-over"><summary><span class="caret" aria-hidden="true"></span>${counted(passedOver.length, "memory").replace(/memorys$/, "memories")} compared, but not similar enough</summary><${Recalls} recalled=${passedOver} sources=${[]} /></details>` : null}`;
}

function Source({ source, turn }) {
  const engramId = engramOf(source.address);
  const tainted = turn.tool_calls.some((call) => source.calls.includes(call.call_id) && call.tainted);
  const body = engramId
    ? html`<button type="button" class="quiet" onClick=${() => inspect({ kind: "engram", engramId })}>memory <code>${engramId.slice(0, 8)}</code></button>`
    : html`<${Page} address=${source.address} />`;
  const tools = [...new Set(source.calls.map((id) => turn.tool_calls.find((call) => call.call_id === id)?.tool))].filter(Boolean);
  return html`<li value=${source.number}>${body} <small>${tools.join(", ")}${tainted ? " · untrusted" : ""}</small></li>`;
}

function Page({ address }) {
  const host = hostOf(address);
  if (!host) return html`<span dir="auto">${address}</span>`;
  const rest = address.slice(address.indexOf(host) + host.length);
  return html`<a href=${address} target="_blank" rel="noopener noreferrer"><b>${host}</b>${rest === "/" ? "" : rest}</a>`;
}

/** What happened, in sentences. */

import { html } from "../../html.js";
import { storyOf } from "../../core/story.js";
import { duration } from "../../core/words.js";
import { inspect, traceOf } from "../../state/inspection.js";
import { TraceState } from "./trace_state.js";

const LONG = 240; // characters of more words that stand there unfolded

export function StoryTab({ shown, turn }) {
  const trace = traceOf(shown.queryId).value;
  if (!turn) return html`<p class="empty">This answer is not loaded.</p>`;
  const story = storyOf(turn, trace.value).filter((one) => shown.kind !== "call" || one.callId === shown.callId);
  const call = shown.kind === "call" ? turn.tool_calls.find((one) => one.call_id === shown.callId) : null;
  return html`<ol class="story">${story.map((one) => html`<${Sentence} key=${one.key} sentence=${one} shown=${shown} />`)}</ol>
    ${call ? html`<${Call} call=${call} />` : null}
    <${TraceState} trace=${trace} queryId=${shown.queryId} />`;
}

function Sentence({ sentence, shown }) {
  const { at, kind, text, more, callId } = sentence;
  const canOpen = callId && shown.kind !== "call";
  const open = () => inspect({ kind: "call", sessionId: shown.sessionId, queryId: shown.queryId, callId });
  return html`<li data-kind=${kind}>
    <span class="at num">${at == null ? "" : at < 0.001 ? "0" : `+${duration(at)}`}</span>
    <div><p dir="auto">${kind === "bad" ? html`<span class="bad-mark" role="img" aria-label="trouble">△</span> ` : null}${text}${canOpen ? html` <button type="button" class="quiet" aria-label=${`Inspect this call: ${text}`} onClick=${open}>Look</button>` : null}</p>
      ${more ? html`<${More} text=${more} />` : null}</div>
  </li>`;
}

function More({ text }) {
  if (text.length <= LONG) return html`<p class="more-words" dir="auto">${text}</p>`;
  return html`<details class="more-words"><summary><span class="caret" aria-hidden="true"></span><span dir="auto">${text.slice(0, LONG)}…</span></summary><p dir="auto">${text}</p></details>`;
}

function Call({ call }) {
  return html`<h3>Arguments</h3><pre tabindex="0" aria-label="Arguments">${JSON.stringify(call.args ?? {}, null, 2)}</pre>
    <h3>${call.error ? "Error" : "Result"}</h3>
    <pre tabindex="0" dir="auto" aria-label="Result">${call.error ? `${call.error.kind}: ${call.error.message}` : (call.result ?? "no result yet")}</pre>`;
}

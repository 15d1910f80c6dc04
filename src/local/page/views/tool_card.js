/** One tool call: which tool, what was sent, what came back. */

import { html, useEffect, useRef, useState } from "../html.js";
import { isDone } from "../core/turn.js";
import { duration, figure } from "../core/words.js";
import { hostOf } from "../core/sources.js";
import { send } from "../net/api.js";
import { useFold } from "../state/folds.js";
import { inspect } from "../state/inspection.js";
import { Changes } from "./changes.js";
import { Recalls } from "./recalls.js";

const MAIN = ["query", "url", "path", "command", "text", "question", "name"];

export function ToolCard({ call, turn, sources }) {
  const [isOpen, open] = useFold(`call ${call.call_id}`);
  const state = call.error ? "failed" : isDone(call) ? "done" : turn.status === "open" ? "running" : "lost";
  const recalled = call.recalled ?? [];
  return html`<section class="call" data-state=${state} data-call=${call.call_id} aria-label=${`Tool ${call.tool}: ${WORDS[state]}`}>
    <button type="button" class="call-head" aria-expanded=${isOpen} onClick=${() => open(!isOpen)}>
      <span class=${`dot ${state}`} aria-hidden="true"></span><code>${call.tool}</code><q dir="auto">${mainOf(call.args)}</q>
      <span class="push"></span>${call.tainted ? html`<span class="tag" title="Its result contains untrusted content">untrusted</span>` : null}
      <span class="num">${state === "done" ? duration(call.duration_ms / 1000) : WORDS[state]}</span>
    </button>
    ${state === "running" && call.output ? html`<${Output} text=${call.output} />` : null}
    ${call.error ? html`<p class="call-error"><b>${call.error.kind}</b> ${call.error.message}</p>` : null}
    ${recalled.length ? html`<${Recalls} recalled=${recalled} call=${call} sources=${sources} />` : null}
    ${call.undoable ? html`<${Changes} call=${call} />` : null}
    ${isOpen ? html`<${Insides} call=${call} turn=${turn} />` : null}
  </section>`;
}

const WORDS = { failed: "failed", done: "done", running: "running", lost: "no result" };

/** The argument that says most. */
function mainOf(args) {
  if (!args || typeof args !== "object") return "";
  const value = MAIN.map((name) => args[name]).find((one) => typeof one === "string") ?? Object.values(args)[0];
  if (value === undefined) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return hostOf(text) ? text.replace(/^https?:\/\//, "") : text;
}

/** What a running call has written so far: the end of it is seen. */
function Output({ text }) {
  const place = useRef(null);
  useEffect(() => void (place.current.scrollTop = place.current.scrollHeight), [text]);
  return html`<pre class="call-output" dir="auto" tabindex="0" aria-label="Output so far" ref=${place}>${text}</pre>`;
}

function Insides({ call, turn }) {
  const [whole, keep] = useState(null);
  const more = async () => {
    const address = `/query/${encodeURIComponent(turn.query_id)}/results/${encodeURIComponent(call.call_id)}`;
    keep(await send("GET", address).then((response) => response.text()).catch((failure) => `The result could not be read: ${failure.message}`));
  };
  return html`<div class="insides">
    <h3>Sent</h3><pre tabindex="0">${JSON.stringify(call.args ?? {}, null, 2)}</pre>
    ${call.result == null ? null : html`<h3>Result</h3><pre tabindex="0" dir="auto">${whole ?? text(call.result)}</pre>`}
    <button type="button" class="quiet" onClick=${() => inspect({ kind: "call", sessionId: turn.session_id, queryId: turn.query_id, callId: call.call_id }, "story")}>Inspect</button>
    ${call.whole && whole === null ? html`<button type="button" onClick=${() => void more()}>Show all ${figure(call.whole.characters ?? 0)} characters</button>` : null}
  </div>`;
}

function text(result) {
  return typeof result === "string" ? result : JSON.stringify(result, null, 2);
}

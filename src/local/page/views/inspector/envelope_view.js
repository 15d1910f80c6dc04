/** One message of the bus: its header, and its payload in the journal. */

import { html, useEffect, useState } from "../../html.js";
import { request } from "../../net/api.js";
import { CopyButton } from "../copy_button.js";

export function EnvelopeView({ shown }) {
  const { envelope } = shown;
  const { state, again } = useEntry(envelope.seq ?? null);
  const { summary, recorded, redacted, ...header } = envelope;
  return html`<dl class="known header">${Object.entries(header)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]) => html`<dt>${name}</dt><dd><code>${name === "sent_at" ? stamp(value) : String(value)}</code></dd>`)}</dl>
    ${summary ? html`<p class="quiet-words" dir="auto">${summary}</p>` : null}
    <h3>Payload ${state.payload ? html`<${CopyButton} text=${JSON.stringify(state.payload, null, 2)} what="payload" />` : null}</h3>
    <${Payload} state=${state} again=${again} />`;
}

/** The journal's entry of that number. */
function useEntry(number) {
  const [state, put] = useState(number === null ? { kind: "passing" } : { kind: "loading" });
  const [round, next] = useState(0);
  useEffect(() => {
    if (number === null) return undefined;
    let isHere = true;
    request("GET", `/journal/${number}`).then(
      (entry) => isHere && put(entry.redacted ? { kind: "redacted" } : { kind: "there", payload: entry.payload }),
      (failure) => isHere && put({ kind: "failed", message: failure.message })
    );
    return () => (isHere = false);
  }, [number, round]);
  return { state, again: () => next(round + 1) };
}

function Payload({ state, again }) {
  if (state.kind === "passing") return html`<p class="empty">This message is ephemeral: it was sent once and not recorded.</p>`;
  if (state.kind === "loading") return html`<div aria-busy="true"><span class="skeleton line"></span></div>`;
  if (state.kind === "redacted") return html`<p class="empty">The payload was deleted. The header stays in the journal.</p>`;
  if (state.kind === "failed") return html`<p class="trouble" role="alert">The payload could not be read: ${state.message} <button type="button" onClick=${again}>Try again</button></p>`;
  return html`<pre tabindex="0" dir="auto" aria-label="Payload">${JSON.stringify(state.payload, null, 2)}</pre>`;
}

function stamp(seconds) {
  return Number.isFinite(seconds) ? new Date(seconds * 1000).toISOString().replace("T", " ").replace("Z", "") : String(seconds);
}

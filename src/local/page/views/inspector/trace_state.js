/** A trace that is not there yet, or that could not be read. */

import { html } from "../../html.js";
import { loadTrace } from "../../state/inspection.js";

/** Nothing where the trace is there. `trace` is what `traceOf` holds. */
export function TraceState({ trace, queryId }) {
  const { value, trouble, isLoading } = trace;
  if (trouble && !isLoading) {
    return html`<p class="trouble" role="alert" data-state="failed">${value ? "This may be out of date: " : "The recorded messages could not be read: "}${trouble.message}
      <button type="button" onClick=${() => void loadTrace(queryId)}>Try again</button></p>`;
  }
  if (!value) return html`<div class="trace-waits" aria-busy="true" data-state="loading"><span class="skeleton line"></span><span class="skeleton line"></span><span class="skeleton line"></span></div>`;
  return value.complete === false ? html`<p class="help">Still running, or some messages are missing.</p>` : null;
}

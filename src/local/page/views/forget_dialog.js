/** Removes one memory, and then says who may repeat it. */

import { html, useState } from "../html.js";
import { request } from "../net/api.js";
import { Repeated } from "./repeated.js";

export function ForgetDialog({ engramId, text, close }) {
  const [step, put] = useState({ name: "ask" });
  const forget = () =>
    request("DELETE", `/memory/${encodeURIComponent(engramId)}`).then(
      (done) => (done.repeated_in?.length ? put({ name: "done", ids: done.repeated_in }) : close()),
      (failure) => put({ name: "ask", trouble: failure.message })
    );
  if (step.name === "done") return html`<h2 id="dialog-title">Forgotten</h2><p>These answers recalled it and may repeat it:</p><${Repeated} ids=${step.ids} />
    <div class="dialog-acts"><button type="button" data-first onClick=${close}>Close</button></div>`;
  return html`<h2 id="dialog-title">Forget this?</h2><blockquote dir="auto">${text}</blockquote>
    <p>The memory and its exchange are deleted permanently, also from the conversation.</p>
    ${step.trouble ? html`<p class="trouble" role="alert">${step.trouble}</p>` : null}
    <div class="dialog-acts"><button type="button" data-first onClick=${close}>Cancel</button><button type="button" class="bad" onClick=${() => void forget()}>Forget</button></div>`;
}

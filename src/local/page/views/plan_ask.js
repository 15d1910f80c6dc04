/** A plan is shown for approval: all of it, and three answers; words go with a no. */

import { html, useId, useState } from "../html.js";
import { heading, isReserved, timeLeft } from "../core/approvals.js";
import { decide } from "../state/approvals.js";
import { me } from "../state/store.js";
import { Unanswered } from "./unanswered.js";

export function PlanAsk({ approval, now }) {
  const [words, type] = useState("");
  const [failure, fail] = useState(null);
  const id = useId();
  const left = timeLeft(approval, now);
  const isOwner = me.value.owner;
  const steps = Array.isArray(approval.args?.steps) ? approval.args.steps : [];
  const say = (decision, mode = null) => decide(approval.call_id, decision, words.trim() || null, mode).catch(fail);
  const send = (event) => {
    event.preventDefault();
    void say("deny");
  };
  return html`<section class="ask" role="group" tabindex="-1" aria-labelledby=${`${id}-head`} data-call=${approval.call_id}>
    <h3 id=${`${id}-head`} dir="auto">${heading(approval, isOwner)}</h3>
    <ol class="ask-steps">${steps.map((step, index) => html`<li key=${index} dir="auto">${String(step)}</li>`)}</ol>
    ${approval.sources?.length ? html`<p>This conversation contains untrusted content from ${approval.sources.map((source, index) => html`${index ? ", " : ""}<b dir="auto">${source}</b>`)}. It may have influenced this plan.</p>` : null}
    <${Unanswered} failure=${failure} />
    <form class="ask-acts" onSubmit=${send}>${isReserved(approval, isOwner) ? html`<b>Only the owner can allow this.</b>` : html`<button type="button" class="accent" onClick=${() => void say("allow")}>Approve</button>`}
      ${isOwner ? html`<button type="button" title="Changes that can be undone need no further approval; all other calls still do" onClick=${() => void say("allow", "acceptEdits")}>Approve, with edits</button>` : null}
      <input type="text" dir="auto" aria-label="What should be different" placeholder="What should be different" value=${words} onInput=${(event) => type(event.target.value)} />
      <button type="submit">Reject</button>
      ${left ? html`<small>denied automatically in <span class="num">${left}</span></small>` : null}</form>
  </section>`;
}

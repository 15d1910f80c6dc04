/** A plan is shown for approval: all of it, and three answers; words go with a no. */

import { html, useId, useState } from "../html.js";
import { heading, timeLeft } from "../core/approvals.js";
import { decide } from "../state/approvals.js";
import { Unanswered } from "./unanswered.js";

export function PlanAsk({ approval, now }) {
  const [words, type] = useState("");
  const [failure, fail] = useState(null);
  const id = useId();
  const left = timeLeft(approval, now);
  const steps = Array.isArray(approval.args?.steps) ? approval.args.steps : [];
  const say = (decision, mode = null) => decide(approval.call_id, decision, words.trim() || null, mode).catch(fail);
  const send = (event) => {
    event.preventDefault();
    void say("deny");
  };
  return html`<section class="ask" role="group" tabindex="-1" aria-labelledby=${`${id}-head`} data-call=${approval.call_id}>
    <h3 id=${`${id}-head`} dir="auto">${heading(approval)}</h3>
    <ol class="ask-steps">${steps.map((step, index) => html`<li key=${index} dir="auto">${String(step)}</li>`)}</ol>
    ${approval.sources?.length ? html`<p>This conversation has words from ${approval.sources.map((source, index) => html`${index ? ", " : ""}<b dir="auto">${source}</b>`)}: they may be why it wants this.</p>` : null}
    <${Unanswered} failure=${failure} />
    <form class="ask-acts" onSubmit=${send}><button type="button" class="accent" onClick=${() => void say("allow")}>Approve</button>
      <button type="button" title="What can be undone is done without asking; the rest asks" onClick=${() => void say("allow", "acceptEdits")}>Approve, with edits</button>
      <input type="text" dir="auto" aria-label="What is to be different" placeholder="What is to be different" value=${words} onInput=${(event) => type(event.target.value)} />
      <button type="submit">Not like this</button>
      ${left ? html`<small>denied by itself in <span class="num">${left}</span></small>` : null}</form>
  </section>`;
}

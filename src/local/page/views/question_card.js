/** The model asks its user something: one of its own answers, or words. */

import { html, useId, useState } from "../html.js";
import { heading, timeLeft } from "../core/approvals.js";
import { decide } from "../state/approvals.js";
import { Unanswered } from "./unanswered.js";

export function QuestionCard({ approval, now }) {
  const [words, type] = useState("");
  const [failure, fail] = useState(null);
  const id = useId();
  const options = approval.options ?? approval.args?.options ?? [];
  const left = timeLeft(approval, now);
  const answer = (decision, text) => decide(approval.call_id, decision, text).catch(fail);
  const send = (event) => {
    event.preventDefault();
    if (words.trim()) void answer("allow", words.trim());
  };
  return html`<section class="ask" role="group" tabindex="-1" aria-labelledby=${`${id}-head`} data-call=${approval.call_id}>
    <h3 id=${`${id}-head`} dir="auto">${heading(approval)}</h3>
    ${options.length ? html`<div class="ask-options">${options.map((option) => html`<button type="button" key=${option} dir="auto" onClick=${() => void answer("allow", option)}>${option}</button>`)}</div>` : null}
    ${approval.sources?.length ? html`<p>This conversation contains untrusted content from ${approval.sources.map((source, index) => html`${index ? ", " : ""}<b dir="auto">${source}</b>`)}. It may have influenced this question.</p>` : null}
    <${Unanswered} failure=${failure} />
    <form class="ask-acts" onSubmit=${send}><input type="text" dir="auto" aria-label="Your answer" placeholder="Your answer" value=${words} onInput=${(event) => type(event.target.value)} />
      <button type="submit" class="accent" disabled=${!words.trim()}>Answer</button><button type="button" onClick=${() => void answer("deny", null)}>Skip</button>
      ${left ? html`<small>continues without an answer in <span class="num">${left}</span></small>` : null}</form>
  </section>`;
}

/**
 * A tool asks whether it may: what it would do, why it asks, and three answers. It never takes the focus; its letters
 * count only while the focus is in it, so that a key typed for the composer never answers it.
 */

import { html, useId, useState } from "../html.js";
import { choicesFor, effectOf, heading, isReserved, timeLeft } from "../core/approvals.js";
import { decide } from "../state/approvals.js";
import { me } from "../state/store.js";
import { Unanswered } from "./unanswered.js";

const LETTERS = { y: "allow", s: "allow_session", n: "deny" };
const MARKS = { added: "+", removed: "−", command: "$" };
const LETTER_OF = { allow: "Y", allow_session: "S", deny: "N" };

export function ApprovalCard({ approval, now }) {
  const [state, put] = useState({ isSending: false, failure: null });
  const id = useId();
  const left = timeLeft(approval, now);
  const isOwner = me.value.owner;
  const choices = choicesFor(approval, isOwner);
  const say = async (decision) => {
    if (state.isSending || !choices.some(([each]) => each === decision)) return;
    put({ isSending: true, failure: null });
    await decide(approval.call_id, decision).catch((failure) => put({ isSending: false, failure }));
  };
  const key = (event) => {
    const decision = LETTERS[event.key.toLowerCase()];
    if (!decision || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    void say(decision);
  };
  return html`<section class="ask" role="group" tabindex="-1" aria-labelledby=${`${id}-head`} data-call=${approval.call_id} onKeyDown=${key}>
    <h3 id=${`${id}-head`}>${heading(approval, isOwner)}</h3>
    <${Effect} lines=${effectOf(approval)} />
    ${approval.why && !approval.why.endsWith(" be undone.") ? html`<p dir="auto">${approval.why}</p>` : null}
    ${approval.sources?.length ? html`<p>This conversation contains untrusted content from ${approval.sources.map((source, index) => html`${index ? ", " : ""}<b dir="auto">${source}</b>`)}. The call has not been made yet.</p>` : null}
    <${Unanswered} failure=${state.failure} />
    ${isReserved(approval, isOwner) ? html`<p><b>Only the owner can allow this.</b> You can wait, or deny it.</p>` : null}
    <div class="ask-acts">${choices.map(
      ([decision, title]) => html`<button type="button" key=${decision} class=${decision === "allow" ? "accent" : null} disabled=${state.isSending} onClick=${() => void say(decision)}>${title} <kbd>${LETTER_OF[decision]}</kbd></button>`
    )}<span class="push"></span>${left ? html`<small>denied automatically in <span class="num">${left}</span></small>` : null}</div>
  </section>`;
}

function Effect({ lines }) {
  if (!lines.length) return null;
  return html`<pre class="effect" tabindex="0" dir="ltr" aria-label="Effect of the call">${lines.map(
    ({ kind, text }, index) => html`<span key=${index} class=${`e-${kind}`}>${MARKS[kind] ? html`<i aria-hidden="true">${MARKS[kind]}</i>` : null}${kind === "removed" || kind === "added" ? html`<span class="unseen">${kind}: </span>` : null}${text}${"\n"}</span>`
  )}</pre>`;
}

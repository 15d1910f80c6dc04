/** What went wrong with an answer, where it would stand: one sentence, its cause, one button. */

import { html } from "../html.js";
import { faultOf } from "../core/faults.js";
import { retry } from "../state/actions.js";
import { begin } from "../state/commands.js";

export function Fault({ turn, conversation }) {
  if (turn.status === "cancelled") return html`<p class="stopped" data-state="cancelled">Stopped.${turn.answer ? " The partial answer is above." : ""} <button type="button" onClick=${() => retry(turn)}>Ask again</button></p>`;
  const degraded = (turn.degraded ?? []).map((sentence) => html`<p class="degraded" key=${sentence}><span aria-hidden="true">△</span> ${sentence}</p>`);
  if (turn.status !== "failed") return degraded.length ? html`<div>${degraded}</div>` : null;
  const { text, cause, act, word } = faultOf(turn.error);
  const isRepeated = failureBefore(turn, conversation) === turn.error?.message;
  const acts = { again: () => retry(turn), model: () => showModels(), new: () => begin(false) };
  return html`<section class="fault" role="group" aria-label="No answer" data-state="failed" data-kind=${turn.error?.kind ?? "error"}>
    <b>${isRepeated ? `${text.slice(0, -1)}, as before.` : text}</b>
    ${isRepeated ? null : html`<p>${cause}</p>`}
    <button type="button" onClick=${acts[act]}>${word}</button>
    ${degraded}
  </section>`;
}

/** Why the question before had no answer either; undefined where it had one. */
function failureBefore(turn, conversation) {
  const order = conversation.order.value;
  const before = conversation.turns.get(order[order.indexOf(turn.query_id) - 1])?.value;
  return before?.status === "failed" ? (before.error?.message ?? "") : undefined;
}

function showModels() {
  /** @type {HTMLElement | null} */
  const picker = document.querySelector(".bar .model button");
  picker?.click();
}

/** What went wrong with an answer, where it would stand: what, why, and what helps. */

import { html } from "../html.js";
import { retry } from "../state/actions.js";

/** What would help, by the kind of error. */
const HELP = {
  model_missing: "Pull the model, or choose another one.",
  unavailable: "local2 doctor says what is missing.",
  context_overflow: "Begin a new conversation, or attach less.",
  rate_limit: "Wait a little.",
  busy: "Wait a little.",
  quota: "The provider's quota is used up: another model answers without it.",
};

export function Fault({ turn }) {
  if (turn.status === "cancelled") return html`<p class="stopped" data-state="cancelled">Stopped.${turn.answer ? " What was said so far stands above." : ""} <button type="button" onClick=${() => retry(turn)}>Ask again</button></p>`;
  const degraded = (turn.degraded ?? []).map((sentence) => html`<p class="degraded" key=${sentence}><span aria-hidden="true">△</span> ${sentence}</p>`);
  if (turn.status !== "failed") return degraded.length ? html`<div>${degraded}</div>` : null;
  const { kind = "error", message = "" } = turn.error ?? {};
  return html`<section class="fault" role="group" aria-label="No answer" data-state="failed">
    <b>No answer</b> <code>${kind}</code>
    <p>${message || "It was not said why."}${HELP[kind] ? ` ${HELP[kind]}` : ""}</p>
    <button type="button" onClick=${() => retry(turn)}>Ask again</button>
    ${degraded}
  </section>`;
}

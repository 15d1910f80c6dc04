/** What went wrong with an answer, where it would stand: what, why, and what helps. */

import { html } from "../html.js";
import { retry } from "../state/actions.js";

/** What would help, by the kind of error. */
const HELP = {
  model_missing: "Pull the model, or choose another one.",
  unavailable: "Run local2 doctor to find what is missing.",
  context_overflow: "Start a new conversation, or attach less.",
  rate_limit: "Try again in a moment.",
  busy: "Try again in a moment.",
  quota: "The provider's quota is used up: choose another model.",
};

export function Fault({ turn }) {
  if (turn.status === "cancelled") return html`<p class="stopped" data-state="cancelled">Stopped.${turn.answer ? " The partial answer is above." : ""} <button type="button" onClick=${() => retry(turn)}>Ask again</button></p>`;
  const degraded = (turn.degraded ?? []).map((sentence) => html`<p class="degraded" key=${sentence}><span aria-hidden="true">△</span> ${sentence}</p>`);
  if (turn.status !== "failed") return degraded.length ? html`<div>${degraded}</div>` : null;
  const { kind = "error", message = "" } = turn.error ?? {};
  return html`<section class="fault" role="group" aria-label="No answer" data-state="failed">
    <b>No answer</b> <code>${kind}</code>
    <p>${message || "The reason is unknown."}${HELP[kind] ? ` ${HELP[kind]}` : ""}</p>
    <button type="button" onClick=${() => retry(turn)}>Ask again</button>
    ${degraded}
  </section>`;
}

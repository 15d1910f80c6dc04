/** Why a card's answer did not arrive; where the owner has to sign in for it, also the way to the field for the code. */

import { html } from "../html.js";
import { SIGN_IN_FIELD } from "./token_form.js";

export function Unanswered({ failure }) {
  if (!failure) return null;
  if (failure.status !== 401) return html`<p class="trouble" role="alert">Your answer did not arrive: ${failure.message}</p>`;
  return html`<p class="trouble" role="alert">Approving requires signing in: enter the code that <code>local2 code</code> prints.</p>
    <div class="ask-options"><button type="button" onClick=${() => document.getElementById(SIGN_IN_FIELD)?.focus()}>Sign in</button></div>`;
}

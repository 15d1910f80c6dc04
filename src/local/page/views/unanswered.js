/** Why a card's answer did not arrive; where it wants the owner's token, also where that is and a way to give it. */

import { html } from "../html.js";
import { isRefused } from "../net/token.js";

export function Unanswered({ failure }) {
  if (!failure) return null;
  if (failure.status !== 401) return html`<p class="trouble" role="alert">Your answer did not arrive: ${failure.message}</p>`;
  return html`<p class="trouble" role="alert">Approving requires the owner token. It is in the link that LoCAL2 printed when it started, and in the file <code>api_token</code> of its data directory.</p>
    <div class="ask-options"><button type="button" onClick=${() => (isRefused.value = true)}>Enter the token</button></div>`;
}

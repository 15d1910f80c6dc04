/** One fact about the user, as a row of a list. */

import { html } from "../html.js";
import { moment } from "../core/words.js";
import { now } from "../state/store.js";

/** One fact in a row; an unconfirmed one with what can be done about it, where `settle` is given. */
export function Fact({ fact, settle }) {
  const text = `${fact.slot}: ${fact.value}`;
  const isOpen = settle && fact.confirmed === false;
  return html`<li><span dir="auto">${text}${fact.questioned ? html` <small>may have changed since</small>` : null}</span>
    ${isOpen ? html`<span><button type="button" class="quiet" aria-label=${`Confirm ${text}`} onClick=${() => void settle(fact, "POST")}>Confirm</button> <button type="button" class="quiet" aria-label=${`Drop ${text}`} onClick=${() => void settle(fact, "DELETE")}>Drop</button></span>` : html`<span class="num">${fact.stated_at ? moment(fact.stated_at, now.value) : ""}</span>`}</li>`;
}

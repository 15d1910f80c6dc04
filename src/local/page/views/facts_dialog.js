/** What is known about the user, and what was found and not confirmed: that is confirmed or dropped here. */

import { html, useEffect, useState } from "../html.js";
import { moment } from "../core/words.js";
import { request } from "../net/api.js";
import { now } from "../state/store.js";

export function FactsDialog({ close }) {
  const [known, put] = useState(null);
  const [trouble, fail] = useState("");
  const load = () => request("GET", "/memory/facts").then(put, (failure) => fail(failure.message));
  useEffect(() => void load(), []);
  const settle = (fact, method) => request(method, `/memory/facts/${fact.fact_id}${method === "POST" ? "/confirm" : ""}`).then(load, (failure) => fail(failure.message));
  return html`<h2 id="dialog-title">Known about you</h2>
    ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
    ${known?.unconfirmed.length ? html`<h3>Unconfirmed <small>no model is told of it</small></h3><ul class="plain-rows">${known.unconfirmed.map((fact) => html`<${Fact} key=${fact.fact_id} fact=${fact} settle=${settle} />`)}</ul>` : null}
    ${known?.facts.length ? html`<h3>Facts</h3><ul class="plain-rows">${known.facts.map((fact) => html`<${Fact} key=${fact.fact_id} fact=${fact} />`)}</ul>` : null}
    ${known && !known.facts.length && !known.unconfirmed.length ? html`<p class="empty">No fact is known.</p>` : null}
    <div class="dialog-acts"><button type="button" onClick=${close}>Close</button></div>`;
}

/** One fact in a row; an unconfirmed one with what can be done about it, where `settle` is given. */
export function Fact({ fact, settle }) {
  const text = `${fact.slot}: ${fact.value}`;
  const isOpen = settle && fact.confirmed === false;
  return html`<li><span dir="auto">${text}${fact.questioned ? html` <small>may have changed since</small>` : null}</span>
    ${isOpen ? html`<span><button type="button" class="quiet" aria-label=${`Confirm ${text}`} onClick=${() => void settle(fact, "POST")}>Confirm</button> <button type="button" class="quiet" aria-label=${`Drop ${text}`} onClick=${() => void settle(fact, "DELETE")}>Drop</button></span>` : html`<span class="num">${fact.stated_at ? moment(fact.stated_at, now.value) : ""}</span>`}</li>`;
}

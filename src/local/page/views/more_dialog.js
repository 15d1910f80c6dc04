/** On a phone: the screens that have no place in the bar. */

import { html } from "../html.js";
import { screensHere } from "../state/screens.js";
import { PlaceLink } from "./places.js";

export function MoreDialog({ close }) {
  return html`<h2 id="dialog-title">More</h2>
    <ul class="more-places">${screensHere().filter((one) => one.place === "more").map((one) => html`<li key=${one.id}><${PlaceLink} one=${one} onClick=${close} /></li>`)}</ul>
    <div class="dialog-acts"><button type="button" onClick=${close}>Close</button></div>`;
}

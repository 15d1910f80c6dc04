/** Where there is nothing yet, and where something went wrong. */

import { html } from "../html.js";

/** One sentence on what will be here. */
export function Empty({ children }) {
  return html`<p class="empty">${children}</p>`;
}

/** One sentence, its cause and one button. @param {{text: string, failure?: any, label?: string, act?: (() => void) | null}} given */
export function Trouble({ text, failure = null, label = "Try again", act = null }) {
  return html`<section class="fault" role="alert"><b>${text}</b>
    ${failure ? html`<p>${failure.message ?? String(failure)}</p>` : null}
    ${act ? html`<button type="button" onClick=${act}>${label}</button>` : null}</section>`;
}

/** What stands for the content until it is loaded. */
export function Loading() {
  return html`<div class="loading" aria-busy="true"><span class="skeleton line"></span><span class="skeleton line"></span><span class="skeleton line"></span></div>`;
}

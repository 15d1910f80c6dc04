/** The head of a screen: its title, one sentence, what can be done. */

import { html, useLayoutEffect } from "../html.js";

/** @param {{title: string, text?: string, children?: any}} given `children` are the actions */
export function ScreenHead({ title, text = "", children = null }) {
  useLayoutEffect(() => void (document.title = `${title} · LoCAL2`), [title]);
  return html`<header class="screen-head">
    <div><h1 tabindex="-1">${title}</h1>${text ? html`<p>${text}</p>` : null}</div>
    ${children ? html`<div class="screen-acts">${children}</div>` : null}
  </header>`;
}

/** What is known of the thing that is selected: the right pane, a sheet on a phone. */

import { html } from "../html.js";
import { isInspectorOpen } from "../state/store.js";

export function Inspector() {
  return html`<aside class="inspector" aria-label="Inspector">
    <header><h2>Inspector</h2><button type="button" onClick=${() => (isInspectorOpen.value = false)}>Close</button></header>
  </aside>`;
}

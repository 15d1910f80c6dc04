/** A note that no real model answers yet, with a button to get one; if closed, it appears again in the next tab. */

import { html, useState } from "../html.js";
import { goToScreen } from "../state/screens.js";
import { health } from "../state/store.js";

const KEPT_AS = "local2.stand_in_note";

export function StandInNote() {
  const [isAway, put] = useState(sessionStorage.getItem(KEPT_AS) === "away");
  if (!health.value?.stand_in || isAway) return null;
  const away = () => {
    put(true);
    sessionStorage.setItem(KEPT_AS, "away");
  };
  return html`<p class="bar-note" role="status" data-state="stand-in"><span><b>The stand-in answers:</b> a small program with fixed rules<span class="long">, for a first look</span>. <span class="long">For real answers install a model; <code>local2 model try</code> installs a very small one.</span></span>
    <button type="button" class="get" onClick=${() => goToScreen("system", "models")}>Get a model</button><button type="button" aria-label="Close this note" onClick=${away}>Later</button></p>`;
}

/** Whether this browser is signed in, and signing out. */

import { html, useState } from "../html.js";
import { signIn, signOut } from "../net/token.js";

export function SignedIn() {
  const [trouble, put] = useState("");
  const leave = async (everywhere) => put(await signOut(everywhere));
  const now = signIn.value;
  if (!now) return html`<section class="signed-in"><h2>Signing in</h2><p class="help">This browser is not signed in. Enter the code that <code>local2 code</code> prints at the top of the page.</p></section>`;
  return html`<section class="signed-in"><h2>Signing in</h2>
    <p class="help">This browser is signed in as ${now.owner ? "the owner" : html`<b dir="auto">${now.user_id}</b>`}, until you sign out or do not use it for 90 days.</p>
    <div class="ask-acts"><button type="button" onClick=${() => void leave(false)}>Sign out</button>
      <button type="button" onClick=${() => void leave(true)}>Sign out of all browsers</button></div>
    ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
  </section>`;
}

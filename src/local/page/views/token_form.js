/** Signing in: the whole page where nothing may be seen before, the bar above the page where only some things need it. */

import { html, useState } from "../html.js";
import { enter, signIn, signInTrouble } from "../net/token.js";

export const SIGN_IN_FIELD = "sign-in-code";

export function TokenForm() {
  return html`<main class="gate" data-state="refused"><${SecretForm} then=${() => location.reload()} label="Code or token" type="password" autocomplete="current-password">
    <span class="mark" aria-hidden="true"></span>
    <h1>Sign in to LoCAL2</h1>
    <p>Open the link of your invitation, or enter your token. The owner enters the code that <code>local2 code</code> prints on the machine where LoCAL2 runs.</p>
    <input type="text" autocomplete="username" value="LoCAL2" hidden />
  <//></main>`;
}

/** Says that this browser is not signed in, with a field for the code. */
export function SignInBar() {
  if (signIn.value) return null;
  const then = () => signIn.value.owner || location.reload(); // a user sees other conversations
  return html`<section class="bar-note sign-in" aria-label="Sign in" data-state="anonymous">
    <span><b>Not signed in.</b> <span class="long">You can chat, but not approve calls or change settings.</span> Enter the code that <code>local2 code</code> prints.</span>
    <${SecretForm} then=${then} label="Code" type="text" autocomplete="one-time-code" />
  </section>`;
}

function SecretForm({ then, label, type, autocomplete, children = null }) {
  const [value, put] = useState("");
  const [isSending, send] = useState(false);
  const submit = async (event) => {
    event.preventDefault();
    send(true);
    const isIn = await enter(value.trim());
    send(false);
    if (isIn) then();
  };
  return html`<form onSubmit=${submit}>
    ${children}
    <label>${label} <input id=${SIGN_IN_FIELD} type=${type} autocomplete=${autocomplete} spellcheck=${false} required value=${value} onInput=${(event) => put(event.target.value)} /></label>
    <button class="accent" type="submit" disabled=${isSending}>Sign in</button>
    ${signInTrouble.value ? html`<p class="trouble" role="alert">${signInTrouble.value}</p>` : null}
  </form>`;
}

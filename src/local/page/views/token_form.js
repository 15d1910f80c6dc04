/** Asks for the token where the API wants one. */

import { html, useState } from "../html.js";
import { keepToken } from "../net/token.js";

export function TokenForm() {
  const [value, put] = useState("");
  const send = (event) => {
    event.preventDefault();
    keepToken(value.trim());
    location.reload();
  };
  return html`<main class="gate" data-state="refused"><form onSubmit=${send}>
    <span class="mark" aria-hidden="true"></span>
    <h1>Sign in to LoCAL2</h1>
    <p>Open the link that LoCAL2 printed when it started, or enter your token. The owner's token is in the file <code>api_token</code> of the data directory; a user's token was printed by <code>local2 user add</code>.</p>
    <input type="text" autocomplete="username" value="LoCAL2" hidden />
    <label>Token <input type="password" autocomplete="current-password" required value=${value} onInput=${(event) => put(event.target.value)} /></label>
    <button class="accent" type="submit">Sign in</button>
  </form></main>`;
}

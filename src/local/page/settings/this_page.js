/** How this page looks in this browser. */

import { html } from "../html.js";
import { SignedIn } from "./signed_in.js";
import { chooseTextSize, chooseTheme, TEXT_SIZES, textSize, theme, THEMES } from "../state/look.js";

export function ThisPage() {
  return html`<h2>This page</h2>
    <p class="help">These two are kept in this browser.</p>
    <${Choice} name="theme" title="Theme" choices=${THEMES} value=${theme.value} choose=${chooseTheme} />
    <${Choice} name="text" title="Text size" choices=${TEXT_SIZES} value=${textSize.value} choose=${chooseTextSize} />
    <${SignedIn} />`;
}

function Choice({ name, title, choices, value, choose }) {
  return html`<fieldset class="segments"><legend>${title}</legend>
    ${Object.entries(choices).map(([id, words]) => html`<label key=${id}><input type="radio" name=${name} value=${id} checked=${id === value} onChange=${() => choose(id)} /><span>${words}</span></label>`)}
  </fieldset>`;
}

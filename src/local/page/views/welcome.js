/** A new conversation: what may be asked, and what it is that answers. */

import { html } from "../html.js";
import { changeDraft } from "../state/drafts.js";
import { isIncognito } from "../state/store.js";

const IDEAS = ["What is the capital of France?", "What did I tell you about myself?", "Summarise a file that I attach"];

export function Welcome() {
  const take = (idea) => {
    changeDraft(null, { text: idea }, !isIncognito.value);
    document.getElementById("question")?.focus();
  };
  return html`<div class="scroll welcome" data-state="ready"><div>
    <span class="mark big" aria-hidden="true"></span>
    <h2>${isIncognito.value ? "This conversation is not remembered" : "Ask. Everything runs on this machine, and you can see every step."}</h2>
    <p>${isIncognito.value
      ? "It is not graded, and deleted half an hour after the last question."
      : "Thinking, tool calls and their results are shown above each answer."}</p>
    ${isIncognito.value ? null : html`<ul>${IDEAS.map((idea) => html`<li><button type="button" onClick=${() => take(idea)}>${idea}</button></li>`)}</ul>`}
  </div></div>`;
}

/** The list of keys. */

import { html } from "../html.js";
import { COMMANDS } from "../state/commands.js";
import { hasLetters, switchLetters } from "../state/keys.js";

const ALWAYS = [
  ["Enter", "Send"], ["Shift Enter", "New line"], ["↑", "Edit the last question, in an empty box"], ["Esc", "Stop the answer, or close"], ["Ctrl K", "Search and commands"],
];

export function KeysDialog({ close }) {
  const letters = COMMANDS.filter((command) => command.keys?.length);
  return html`<h2 id="dialog-title">Keys</h2>
    <dl class="key-list">${ALWAYS.map(([keys, title]) => html`<${Row} keys=${keys} title=${title} />`)}</dl>
    <label class="switch"><input type="checkbox" checked=${hasLetters.value} onChange=${(event) => switchLetters(event.target.checked)} /> Single letters, outside of fields</label>
    <dl class="key-list" data-off=${!hasLetters.value}>${letters.map((command) => html`<${Row} keys=${command.keys[0]} title=${command.title} />`)}</dl>
    <div class="dialog-acts"><button type="button" onClick=${close}>Close</button></div>`;
}

function Row({ keys, title }) {
  return html`<div><dt>${keys.split(" ").map((one) => html`<kbd>${one}</kbd> `)}</dt><dd>${title}</dd></div>`;
}

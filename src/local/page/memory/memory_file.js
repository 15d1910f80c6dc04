/** MEMORY.md: facts and notes as a text that is edited by hand. What a change does is shown before it is done. */

import { html, useState } from "../html.js";
import { doesAnything, outcomeOf } from "../core/memory.js";
import { request } from "../net/api.js";
import { Button, Field } from "../parts/field.js";
import { Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { spoken } from "../state/store.js";
import { focusSoon } from "./live.js";

export function MemoryFile() {
  const { data, trouble, reload } = useResource("/memory/file");
  const [typed, type] = useState(null);
  const [found, put] = useState(null);
  const [failure, fail] = useState(null);
  if (trouble && !data) return html`<${Trouble} text="MEMORY.md could not be written." failure=${trouble} act=${reload} />`;
  if (!data) return html`<${Loading} />`;
  const text = typed ?? data.text;
  const isChanged = text !== data.text;
  const send = (isDone) =>
    request("POST", "/memory/file", { text, apply: isDone }).then((answer) => {
      fail(null);
      put(answer);
      spoken.value = isDone ? "The memory was changed" : "The changes are shown";
      if (isDone) type(null), reload(), focusSoon();
    }, fail);
  const reset = () => (type(null), put(null), fail(null), reload(), focusSoon());
  return html`<${Field} label="MEMORY.md" help="Change a line, delete it, or add one (“- what: value” under Facts). Leave the marks behind the others as they are.">
      ${(given) => html`<textarea ...${given} class="memory-file" rows="18" spellcheck="false" dir="auto" value=${text} onInput=${(event) => (type(event.target.value), put(null))}></textarea>`}</${Field}>
    ${failure ? html`<${Trouble} text="The changes could not be read." failure=${failure} label="Close" act=${() => fail(null)} />` : null}
    ${found ? html`<${Found} found=${found} />` : null}
    <div class="row-acts file-acts">${found && !found.applied && doesAnything(found.outcomes) ? html`<${Button} kind="accent" act=${() => send(true)}>Change the memory</${Button}>` : html`<${Button} kind="accent" disabled=${!isChanged} act=${() => send(false)}>Show the changes</${Button}>`}
      <button type="button" class="edged" disabled=${!isChanged && !found} onClick=${reset}>Start over</button></div>`;
}

function Found({ found }) {
  const isNothing = !found.outcomes.length && !found.problems.length;
  return html`<section class="outcomes" role="status"><h2>${found.applied ? "Done" : "What this changes"}</h2>
    ${isNothing ? html`<p class="empty">Nothing.</p>` : null}
    <ul class="plain-rows">${found.outcomes.map((one, index) => html`<${Outcome} key=${index} outcome=${one} isDone=${found.applied} />`)}
      ${found.problems.map((problem) => html`<li key=${problem}><span dir="auto"><b class="trouble">Not understood</b> ${problem}</span></li>`)}</ul></section>`;
}

function Outcome({ outcome, isDone }) {
  const { word, text, why, isBad } = outcomeOf(outcome, isDone);
  return html`<li><span dir="auto"><b class=${isBad ? "trouble" : null}>${word}</b> ${text}${why ? html` <small>${why}</small>` : null}</span><span class="num">${outcome.kind}</span></li>`;
}

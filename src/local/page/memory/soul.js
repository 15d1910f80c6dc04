/** SOUL.md, the assistant's character, with its versions; and all that the model is told before a question. */

import { html, useState } from "../html.js";
import { counted } from "../core/words.js";
import { Code } from "../parts/detail.js";
import { Button, Field } from "../parts/field.js";
import { Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { Versions } from "../parts/versions.js";
import { spoken } from "../state/store.js";
import { ownerRequest } from "../state/system.js";

export function Soul() {
  const { data, trouble, reload } = useResource("/soul");
  const prompt = useResource("/prompt");
  const [typed, type] = useState(null);
  const [failure, fail] = useState(null);
  if (trouble && !data) return html`<${Trouble} text="SOUL.md could not be read." failure=${trouble} act=${reload} />`;
  if (!data) return html`<${Loading} />`;
  const text = typed ?? data.text;
  const after = () => (fail(null), type(null), reload(), prompt.reload());
  const save = () => ownerRequest("PUT", "/soul", { text }).then(() => ((spoken.value = "SOUL.md was saved"), after()), fail);
  return html`<div><${Field} label="SOUL.md" help=${html`How the assistant is to be, and what it should know of you. The model is told this before every question of yours, from the next one on. The file is <code>${data.path}</code>.`}>
      ${(given) => html`<textarea ...${given} class="memory-file" rows="12" dir="auto" placeholder="Answer briefly, and say when you are not sure." value=${text} onInput=${(event) => type(event.target.value)}></textarea>`}</${Field}>
    ${failure ? html`<${Trouble} text="SOUL.md was not saved." failure=${failure} label="Close" act=${() => fail(null)} />` : null}
    <div class="row-acts file-acts"><${Button} kind="accent" disabled=${text === data.text} act=${save}>Save</${Button}>
      <button type="button" class="edged" disabled=${text === data.text} onClick=${() => (type(null), fail(null))}>Start over</button></div>
    <${Versions} data=${data} path="/soul" name="SOUL.md" done=${after} />
    <h2>What the model is told</h2>
    ${prompt.trouble ? html`<${Trouble} text="The system prompt could not be read." failure=${prompt.trouble} act=${prompt.reload} />` : prompt.data ? html`<${Prompt} prompt=${prompt.data} />` : html`<${Loading} />`}</div>`;
}

function Prompt({ prompt: { model, tokens, sections } }) {
  return html`<p class="lead">Before each question ${model} is told these ${counted(sections.length, "part")}, ${counted(tokens, "token")} together. Facts, memories and the conversation come after them; <i>Why</i> under an answer shows those.</p>
    <ul class="things">${sections.map((one, index) => html`<li key=${index}><details><summary><b>${one.name}</b> <small>${one.origin} · ${counted(one.tokens, "token")}</small></summary><${Code} label=${one.name} text=${one.text} /></details></li>`)}</ul>`;
}

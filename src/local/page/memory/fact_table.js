/** What is known about the user: what waits to be confirmed, what holds, what a model is told, and the history. */

import { html, useState } from "../html.js";
import { counted } from "../core/words.js";
import { Example } from "../parts/example.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { FactForm, FactRows } from "./fact_rows.js";
import { exchangeAt, focusSoon, useRemembered } from "./live.js";

export function FactTable() {
  const [isWhole, show] = useState(false);
  const { data, trouble, reload } = useResource(`/memory/facts${isWhole ? "?history=true" : ""}`);
  const [isAdding, add] = useState(false);
  useRemembered(reload);
  const leave = (isDone) => {
    add(false);
    if (isDone) reload();
    requestAnimationFrame(() => focusSoon(document.getElementById("add-fact")));
  };
  if (trouble && !data) return html`<${Trouble} text="The facts could not be read." failure=${trouble} act=${reload} />`;
  const facts = (data?.facts ?? []).filter((fact) => fact.confirmed !== false || fact.superseded_at);
  const waiting = data?.unconfirmed ?? [];
  return html`<div class="facts-part"><div class="acts-above">${isAdding ? null : html`<button type="button" class="edged" id="add-fact" onClick=${() => add(true)}>Add a fact</button>`}
      <label class="switch"><input type="checkbox" checked=${isWhole} onChange=${(event) => show(event.target.checked)} /> Show what no longer holds</label></div>
    ${isAdding ? html`<${FactForm} close=${() => leave(false)} done=${() => leave(true)} />` : null}
    ${trouble ? html`<${Trouble} text="The facts could not be read again." failure=${trouble} act=${reload} />` : null}
    ${!data ? html`<${Loading} />` : null}
    ${waiting.length ? html`<h2>Waiting for you</h2><p>These are in what you said, but nobody has confirmed them. Until you do, a model is told only those about health, marked as unconfirmed.</p><${FactRows} facts=${waiting} reload=${reload} label="Unconfirmed facts" />` : null}
    ${facts.length ? html`<h2>${isWhole ? "Known, with the history" : "Known"}</h2><${FactRows} facts=${facts} reload=${reload} label="Facts" />` : data && !waiting.length ? html`<${Empty}>No fact is known yet: state one in a conversation, or add one here.<${Example} ask="I take my coffee black." /></${Empty}>` : null}
    ${data?.told?.length ? html`<${Told} known=${data} />` : null}</div>`;
}

function Told({ known }) {
  const pinned = new Set(known.pinned ?? []);
  return html`<details class="told"><summary>What a model is told in every conversation: ${counted(known.told.length, "line")}</summary>
      <ul class="plain-rows">${known.told.map((line) => html`<li key=${line}><span dir="auto">${line}</span>${pinned.has(line) ? html`<span class="tag">pinned</span>` : null}</li>`)}</ul></details>
    ${known.left_out?.length ? html`<p class="note">${counted(known.left_out.length, "pinned exchange")} ${known.left_out.length === 1 ? "has" : "have"} no room among these lines: ${known.left_out.map((id, index) => html`<a key=${id} href=${exchangeAt(id)}>exchange ${index + 1}</a> `)}</p>` : null}`;
}

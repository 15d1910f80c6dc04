/** Finds words in a conversation, in turns that are not loaded, too. */

import { html, useMemo, useState } from "../html.js";
import { latest } from "../core/latest.js";
import { request } from "../net/api.js";
import { counted } from "../core/words.js";
import { goToTurn } from "../state/actions.js";
import { currentId } from "../state/store.js";

const WHERE = { query: "asked", answer: "answered", thinking: "thought" };

export function FindDialog({ close }) {
  const [state, put] = useState({ hits: null, trouble: "" });
  const look = useMemo(() => latest(async (text, isLast) => {
    const found = await lookedUp(text.trim());
    if (isLast()) put(found);
  }), []);
  const show = (hit) => () => (close(), void goToTurn(currentId.peek(), hit.query_id));
  return html`<h2 id="dialog-title" class="unseen">Find in this conversation</h2>
    <input type="text" role="searchbox" autocomplete="off" data-first class="wide" aria-label="Find in this conversation" placeholder="Find in this conversation" onInput=${(event) => look(event.target.value)} />
    <p class="unseen" role="status">${state.hits ? counted(state.hits.length, "place") : ""}</p>
    ${state.trouble ? html`<p class="trouble" role="alert">${state.trouble}</p>` : null}
    ${state.hits && !state.hits.length ? html`<p class="empty">No turn contains these words.</p>` : null}
    <ul class="hits">${(state.hits ?? []).map((hit) => html`<li key=${`${hit.query_id}${hit.where}`}><button type="button" onClick=${show(hit)}><small>${WHERE[hit.where] ?? hit.where}</small> <span dir="auto">${hit.excerpt}</span></button></li>`)}</ul>`;
}

async function lookedUp(text) {
  if (!text) return { hits: null, trouble: "" };
  try {
    const { hits } = await request("GET", `/sessions/${currentId.peek()}/find?query=${encodeURIComponent(text)}`);
    return { hits, trouble: "" };
  } catch (failure) {
    return { hits: null, trouble: failure.message };
  }
}

/** The conversations: to go to, begin, search. */

import { html, useState } from "../html.js";
import { grouped } from "../core/session_list.js";
import { counted } from "../core/words.js";
import { begin } from "../state/commands.js";
import { loadMore, search } from "../state/listing.js";
import { cursor, found, isIncognito, isListed, isRailOpen, listTrouble, now, sessions } from "../state/store.js";
import { SessionItem } from "./session_item.js";

export function Rail() {
  return html`<nav class="rail" aria-label="Conversations">
    <header class="brand"><span class="mark" aria-hidden="true"></span><b>LoCAL2</b>
      <button type="button" class="rail-close" onClick=${() => (isRailOpen.value = false)}>Close</button></header>
    <${Search} />
    <div class="acts">
      <button type="button" class="new" onClick=${() => begin(false)}>New conversation</button>
      <button type="button" class="ghost" aria-pressed=${isIncognito.value} title="A conversation that is not remembered and soon deleted" onClick=${() => begin(true)}>Incognito</button>
    </div>
    <div class="sessions" data-state=${listTrouble.value ? "failed" : isListed.value ? "ready" : "loading"}>
      ${listTrouble.value ? html`<p class="trouble" role="status">${listTrouble.value}</p>` : null}
      ${found.value ? html`<${Found} />` : html`<${Groups} />`}
    </div>
  </nav>`;
}

function Search() {
  const [text, put] = useState("");
  const type = (value) => {
    put(value);
    search(value);
  };
  const key = (event) => {
    if (event.key !== "Escape" || !text) return;
    event.stopPropagation();
    event.preventDefault();
    type("");
  };
  return html`<div class="find" role="search">
    <input id="search-conversations" type="search" placeholder="Search" aria-label="Search conversations" value=${text}
      onInput=${(event) => type(event.target.value)} onKeyDown=${key} /><kbd>${isMac() ? "⌘" : "Ctrl"} K</kbd>
  </div>`;
}

function isMac() {
  return navigator.platform?.startsWith("Mac");
}

function Groups() {
  const groups = grouped(sessions.value.values(), now.value);
  if (!groups.length && !isListed.value) return null;
  if (!groups.length) return html`<p class="empty">Your conversations will be listed here.</p>`;
  return html`${groups.map(
      ([heading, rows]) => html`<section key=${heading} aria-label=${heading}><h2>${heading}</h2>
        <ul>${rows.map((row) => html`<${SessionItem} key=${row.session_id} session=${row} />`)}</ul></section>`
    )}
    ${cursor.value ? html`<button type="button" class="more" onClick=${() => void loadMore()}>Earlier ones</button>` : null}`;
}

function Found() {
  const { rows, text, trouble } = found.value;
  if (trouble) return html`<p class="trouble" role="status">${trouble}</p>`;
  return html`<section aria-label="Found"><h2 role="status">${rows.length ? counted(rows.length, "conversation") : `No conversation contains “${text}”`}</h2>
    <ul>${rows.map((row) => html`<${SessionItem} key=${row.session_id} session=${row} match=${row.match} />`)}</ul></section>`;
}

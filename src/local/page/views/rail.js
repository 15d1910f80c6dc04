/** The conversations: to go to, begin, search. */

import { html, useState } from "../html.js";
import { chosenOf, grouped, guestOf, inFolders } from "../core/session_list.js";
import { counted } from "../core/words.js";
import { begin } from "../state/commands.js";
import { choose, loadMore, search, showFolder, showOthers } from "../state/listing.js";
import { choice, cursor, dialog, folderNames, found, isIncognito, isListed, isRailOpen, listTrouble, me, now, openFolders, picked, sessions, showsOthers, tagNames } from "../state/store.js";
import { Menu } from "./menu.js";
import { lazy } from "./lazy.js";
import { DRAGGED, SessionItem } from "./session_item.js";

const PickedBar = lazy(() => import("./picked_bar.js").then((file) => file.PickedBar), () => picked.value !== null);

export function Rail() {
  return html`<nav class="rail" aria-label="Conversations">
    <header class="brand"><span class="mark" aria-hidden="true"></span><b>LoCAL2</b>
      <button type="button" class="rail-close" onClick=${() => (isRailOpen.value = false)}>Close</button></header>
    <${Search} />
    <div class="acts">
      <button type="button" class="new" aria-label="New conversation" onClick=${() => begin(false)}>New</button>
      <button type="button" class="ghost" aria-pressed=${isIncognito.value} title="A conversation that is not remembered and soon deleted" onClick=${() => begin(true)}>Incognito</button>
      <${Menu} label="What is listed" items=${choices()} />
    </div>
    <${Chosen} />
    <div class="sessions" data-state=${listTrouble.value ? "failed" : isListed.value ? "ready" : "loading"}>
      ${listTrouble.value ? html`<p class="trouble" role="status">${listTrouble.value}</p>` : null}
      ${found.value ? html`<${Found} />` : html`<${Groups} />`}
    </div>
    ${picked.value ? html`<${PickedBar} />` : null}
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

/** What the list can show, and the way to select in it. */
function choices() {
  const { kind, ...rest } = choice.value;
  const tag = "tag" in rest ? rest.tag : null;
  return [
    { title: "Select several", run: () => (picked.value = new Set()) },
    { title: "Import conversations", run: () => (dialog.value = { kind: "import" }) },
    { title: "All conversations", run: () => choose({ kind: "all" }), isChecked: kind === "all" },
    { title: "Archived", run: () => choose({ kind: "archived" }), isChecked: kind === "archived" },
    ...(me.value.owner ? [{ title: "Also those of other users", run: () => showOthers(!showsOthers.value), isChecked: showsOthers.value }] : []),
    ...tagNames.value.map((name) => ({ title: `#${name}`, run: () => choose({ kind: "tag", tag: name }), isChecked: tag === name })),
  ];
}

function Chosen() {
  const shown = choice.value;
  if (shown.kind === "all") return null;
  return html`<p class="chosen" role="status"><span dir="auto">${shown.kind === "tag" ? `#${shown.tag}` : "Archived"}</span>
    <button type="button" class="quiet" onClick=${() => choose({ kind: "all" })}>Show all</button></p>`;
}

const EMPTY = { all: "Your conversations will be listed here.", archived: "Nothing is archived. The menu of a conversation archives it.", tag: "No conversation has this tag." };

/** Where a conversation can be dropped. */
function dropInto(folder) {
  return {
    onDragOver: (event) => event.dataTransfer.types.includes(DRAGGED) && event.preventDefault(),
    onDrop: (event) => {
      event.preventDefault();
      const id = event.dataTransfer.getData(DRAGGED);
      if (id) void import("../state/many.js").then((file) => file.moveInto(id, folder));
    },
  };
}

function Folder({ name, rows }) {
  const isOpen = openFolders.value.has(name);
  return html`<div class="folder" ...${dropInto(name)}><details open=${isOpen} onToggle=${(event) => void showFolder(name, event.currentTarget.open)}>
    <summary dir="auto">${name}</summary>
    ${isOpen ? html`<ul aria-label=${name}>${rows.map((row) => html`<${SessionItem} key=${row.session_id} session=${row} />`)}</ul>` : null}
  </details><button type="button" class="quiet" aria-haspopup="dialog" aria-label=${`Rename or dissolve the folder “${name}”`} title="Rename or dissolve this folder" onClick=${() => (dialog.value = { kind: "folder", name })}>…</button></div>`;
}

function Groups() {
  const isFiltered = me.value.owner && !showsOthers.value;
  const shown = chosenOf(sessions.value.values(), choice.value).filter((one) => !isFiltered || !guestOf(one));
  const isAll = choice.value.kind === "all";
  const folders = inFolders(shown, isAll && cursor.value ? folderNames.value : []);
  const groups = grouped(shown, now.value);
  if (!shown.length && !isListed.value) return null;
  if (!shown.length && !folders.length) return html`<p class="empty">${EMPTY[choice.value.kind]}</p>`;
  return html`${folders.length
      ? html`<section aria-label="Folders"><h2>Folders</h2>${folders.map(([name, rows]) => html`<${Folder} key=${name} name=${name} rows=${rows} />`)}</section>`
      : null}
    ${groups.map(
      ([heading, rows]) => html`<section key=${heading} aria-label=${heading} ...${dropInto(null)}><h2>${heading}</h2>
        <ul>${rows.map((row) => html`<${SessionItem} key=${row.session_id} session=${row} />`)}</ul></section>`
    )}
    ${cursor.value && isAll ? html`<button type="button" class="more" onClick=${() => void loadMore()}>Earlier ones</button>` : null}`;
}

function Found() {
  const { rows, text, trouble } = found.value;
  if (trouble) return html`<p class="trouble" role="status">${trouble}</p>`;
  return html`<section aria-label="Found"><h2 role="status">${rows.length ? counted(rows.length, "conversation") : `No conversation contains “${text}”`}</h2>
    <ul>${rows.map((row) => html`<${SessionItem} key=${row.session_id} session=${row} match=${row.match} />`)}</ul></section>`;
}

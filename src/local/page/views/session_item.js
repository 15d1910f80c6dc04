/** One conversation in the list, with what can be done to it. */

import { html } from "../html.js";
import { guestOf } from "../core/session_list.js";
import { changeSession, isVersion } from "../state/listing.js";
import { currentId, dialog, isRailOpen, me, picked, tell } from "../state/store.js";
import { Menu } from "./menu.js";

export function SessionItem({ session, match }) {
  const id = session.session_id;
  const title = session.title || "Untitled";
  const isCurrent = isVersion(currentId.value, id);
  const address = `#/c/${encodeURIComponent(id)}${match?.query_id ? `/${encodeURIComponent(match.query_id)}` : ""}`;
  const selection = picked.value;
  const drag = (event) => event.dataTransfer.setData(DRAGGED, id);
  return html`<li class=${isCurrent ? "conv on" : "conv"} draggable="true" onDragStart=${drag}>
    ${selection ? html`<input type="checkbox" aria-label=${`Select “${title}”`} checked=${selection.has(id)} onChange=${() => (picked.value = toggled(selection, id))} />` : null}
    <a href=${address} aria-current=${isCurrent ? "page" : null} onClick=${() => (isRailOpen.value = false)} dir="auto" title=${session.imported_from ? `${title} (imported from ${session.imported_from})` : title}>
      <span class="title">${title}</span>${match?.excerpt ? html`<small class="excerpt">${match.excerpt}</small>` : null}
    </a>
    ${session.tags?.length ? html`<small class="tag" dir="auto" title=${session.tags.map((tag) => `#${tag}`).join(" ")}>#${session.tags[0]}${session.tags.length > 1 ? ` +${session.tags.length - 1}` : ""}</small>` : null}
    ${me.value.owner && guestOf(session) ? html`<small class="tag" dir="auto" title=${`A conversation of ${guestOf(session)}`}>${guestOf(session)}</small>` : null}
    ${session.archived && match !== undefined ? html`<small class="tag">archived</small>` : null}
    ${session.incognito ? html`<small class="tag">incognito</small>` : null}
    ${session.open ? html`<span class="dots" role="img" aria-label="answering"><u></u><u></u><u></u></span>` : null}
    ${selection ? null : html`<${Menu} label=${`More for “${title}”`} items=${itemsFor(session)} />`}
  </li>`;
}

/** What is dragged: the id of a conversation. */
export const DRAGGED = "text/x-local2-session";

function toggled(selection, id) {
  const next = new Set(selection);
  if (!next.delete(id)) next.add(id);
  return next;
}

function itemsFor(session) {
  const sessionId = session.session_id;
  const over = (kind) => () => (dialog.value = { kind, sessionId });
  const sort = (kind) => () => (dialog.value = { kind, sessionIds: [sessionId] });
  const change = (what) => () => changeSession(sessionId, what).catch((failure) => tell(`The conversation was not changed: ${failure.message}`));
  return [
    { title: "Rename", run: over("rename") },
    { title: session.pinned ? "Unpin" : "Pin", run: change({ pinned: !session.pinned }) },
    { title: "Move to folder", run: sort("move") },
    { title: "Tags", run: sort("tags") },
    { title: session.archived ? "Back to the list" : "Archive", run: change({ archived: !session.archived }) },
    { title: "Export", run: over("export") },
    { title: "Delete", run: over("delete"), isBad: true },
  ];
}

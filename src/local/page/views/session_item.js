/** One conversation in the list, with what can be done to it. */

import { html } from "../html.js";
import { changeSession, isVersion } from "../state/listing.js";
import { currentId, dialog, isRailOpen, tell } from "../state/store.js";
import { Menu } from "./menu.js";

export function SessionItem({ session, match }) {
  const id = session.session_id;
  const title = session.title || "Untitled";
  const isCurrent = isVersion(currentId.value, id);
  const address = `#/c/${encodeURIComponent(id)}${match?.query_id ? `/${encodeURIComponent(match.query_id)}` : ""}`;
  return html`<li class=${isCurrent ? "conv on" : "conv"}>
    <a href=${address} aria-current=${isCurrent ? "page" : null} onClick=${() => (isRailOpen.value = false)} dir="auto" title=${title}>
      <span class="title">${title}</span>${match?.excerpt ? html`<small class="excerpt">${match.excerpt}</small>` : null}
    </a>
    ${session.incognito ? html`<small class="tag">incognito</small>` : null}
    ${session.open ? html`<span class="dots" role="img" aria-label="answering"><u></u><u></u><u></u></span>` : null}
    <${Menu} label=${`More for “${title}”`} items=${itemsFor(session)} />
  </li>`;
}

function itemsFor(session) {
  const sessionId = session.session_id;
  const over = (kind) => () => (dialog.value = { kind, sessionId });
  const pin = () => changeSession(sessionId, { pinned: !session.pinned }).catch((failure) => tell(`The conversation was not changed: ${failure.message}`));
  return [
    { title: "Rename", run: over("rename") },
    { title: session.pinned ? "Unpin" : "Pin", run: pin },
    { title: "Export", run: over("export") },
    { title: "Delete", run: over("delete"), isBad: true },
  ];
}

/** The rail: the screens with icons and words; on a phone a bar with those used most, and "More" for the others. */

import { html } from "../html.js";
import { Icon } from "../icons.js";
import { screenOf } from "../screens.js";
import { waiting } from "../core/approvals.js";
import { counted } from "../core/words.js";
import { approvals } from "../state/approvals.js";
import { addressOf, screensHere } from "../state/screens.js";
import { dialog, me, now, screen } from "../state/store.js";

export function Places() {
  const here = screen.value;
  const isInMore = screenOf(here)?.place === "more";
  return html`<nav class="places" aria-label="Screens">
    <span class="mark" aria-hidden="true"></span>
    <ul>${screensHere().map((one) => html`<li key=${one.id} data-place=${one.place}><${PlaceLink} one=${one} /></li>`)}
      <li class="more-place"><button type="button" aria-haspopup="dialog" data-here=${isInMore} onClick=${() => (dialog.value = { kind: "more" })}><${Icon} name="more" /><span>More</span></button></li></ul>
    <button type="button" class="keys-place" onClick=${() => (dialog.value = { kind: "keys" })}><${Icon} name="keys" /><span>Keys</span></button>
  </nav>`;
}

export function PlaceLink({ one, onClick = undefined }) {
  return html`<a href=${addressOf(one.id)} aria-current=${screen.value === one.id ? "page" : null} onClick=${onClick}><${Icon} name=${one.icon} /><span>${one.title}</span>${one.id === "chat" ? html`<${Waiting} />` : one.id === "tools" ? html`<${Waiting} ofOthers />` : null}</a>`;
}

/** How many tools wait for an approval, wherever one is: in one's own conversations, or those of others. */
function Waiting({ ofOthers = false }) {
  const count = waiting(approvals.value, now.value, { ofOthers, isOwner: me.value.owner }).length;
  if (!count) return null;
  return html`<em class="count" title=${`${counted(count, "approval")} waiting`}>${count}<span class="unseen"> ${count === 1 ? "approval" : "approvals"} waiting</span></em>`;
}

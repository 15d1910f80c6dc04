/** ‹2/3›: the versions of a turn that was asked again. Each is a session of its own. */

import { html } from "../html.js";
import { versionsAt } from "../core/versions.js";
import { go } from "../state/actions.js";

export function Versions({ turn, conversation }) {
  const { sessions, at } = versionsAt(turn, conversation.id, conversation.branches.value, conversation.about.value?.conversation);
  if (sessions.length < 2) return null;
  const to = (step) => () => go(sessions[at + step]);
  return html`<div class="versions" role="group" aria-label=${`Version ${at + 1} of ${sessions.length}`}>
    <button type="button" class="quiet" aria-label="Previous version" disabled=${at === 0} onClick=${to(-1)}>‹</button>
    <span class="num">${at + 1}/${sessions.length}</span>
    <button type="button" class="quiet" aria-label="Next version" disabled=${at === sessions.length - 1} onClick=${to(1)}>›</button>
  </div>`;
}

/** ‹2/3›: the versions of a question that was asked again, changed. Each is a conversation of its own. */

import { html } from "../html.js";
import { go } from "../state/actions.js";

export function Versions({ turn, conversation }) {
  const versions = versionsAt(turn, conversation);
  if (versions.length < 2) return null;
  const at = versions.indexOf(conversation.id);
  const to = (step) => () => versions[at + step] && go(versions[at + step]);
  return html`<div class="versions" role="group" aria-label=${`Version ${at + 1} of ${versions.length}`}>
    <button type="button" class="quiet" aria-label="The version before" disabled=${at === 0} onClick=${to(-1)}>‹</button>
    <span class="num">${at + 1}/${versions.length}</span>
    <button type="button" class="quiet" aria-label="The version after" disabled=${at === versions.length - 1} onClick=${to(1)}>›</button>
  </div>`;
}

/** The conversations that differ from that turn on, the origin first. */
function versionsAt(turn, conversation) {
  const from = conversation.branchedFrom.value;
  const origin = from?.session_id ?? conversation.id;
  const at = from ? (isFirstOwn(turn, conversation) ? from.query_id : null) : turn.query_id;
  if (!at) return [];
  const branches = conversation.branches.value.filter((one) => one.before === at).map((one) => one.session_id);
  const all = [origin, ...branches.filter((id) => id !== origin)];
  return all.includes(conversation.id) ? all : [...all, conversation.id];
}

function isFirstOwn(turn, conversation) {
  const own = conversation.order.value.find((id) => !conversation.turns.get(id).value.copied_from);
  return own === turn.query_id;
}

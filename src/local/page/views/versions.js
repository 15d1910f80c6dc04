/** ‹ 2/3 ›: the versions of a turn that was asked again, each a session of its own; the number opens a menu of them all. */

import { html, useLayoutEffect, useRef, useState } from "../html.js";
import { versionsAt } from "../core/versions.js";
import { moment } from "../core/words.js";
import { request } from "../net/api.js";
import { go } from "../state/actions.js";
import { now } from "../state/store.js";
import { Menu } from "./menu.js";

let goingTo = ""; // the session in which the number has the focus as soon as it is shown, so that one can go on from there

export function Versions({ turn, conversation }) {
  const [turns, put] = useState([]);
  const root = useRef(null);
  const { versions, at } = versionsAt(turn, conversation.branches.value, conversation.about.value?.conversation ?? conversation.id);
  useLayoutEffect(() => {
    if (!root.current || goingTo !== conversation.id) return;
    goingTo = "";
    root.current.querySelector("[aria-haspopup]").focus({ preventScroll: true });
  });
  if (versions.length < 2) return null;
  const count = versions.length;
  const to = (index) => () => go((goingTo = versions[index].session_id));
  const look = () => void Promise.all(versions.map(turnOf)).then(put);
  const items = versions.map((_, index) => ({ title: titleOf(index, turns[index]), isChecked: index === at, run: to(index) }));
  return html`<div class="versions" ref=${root} role="group" aria-label=${`Version ${at + 1} of ${count}`}>
    <button type="button" class="quiet" aria-label="Previous version" disabled=${at === 0} onClick=${to(at - 1)}>‹</button>
    <${Menu} label=${`Version ${at + 1} of ${count}: show all`} items=${items} onOpen=${look}><span class="num">${at + 1}/${count}</span></${Menu}>
    <button type="button" class="quiet" aria-label="Next version" disabled=${at === count - 1} onClick=${to(at + 1)}>›</button>
  </div>`;
}

function titleOf(index, turn) {
  const about = [turn?.model, turn?.created_at && moment(turn.created_at, now.value)];
  return [`Version ${index + 1}`, ...about.filter(Boolean)].join(" · ");
}

/** The turn of a version, null where the record does not tell. */
function turnOf({ session_id: id, query_id: queryId }) {
  const path = `/sessions/${encodeURIComponent(id)}/turns?limit=1&around=${encodeURIComponent(queryId)}`;
  return request("GET", path).then(({ turns }) => turns.find((one) => one.query_id === queryId) ?? null, () => null);
}

/** The turns of a conversation, in one scroll that follows the end while the reader is there. */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { load as loadLatest, loadEarlier, loadLater } from "../state/conversation.js";
import { MoreTurns } from "./more_turns.js";
import { Turn } from "./turn.js";

const KEPT_AS = "local2.place";
const NEAR = 48; // pixels from the end that still count as the end

export function Transcript({ conversation }) {
  const order = conversation.order.value;
  const box = useRef(null);
  const { isBehind, toEnd } = useFollowing(box, conversation);
  const hold = useHeld(box, order[0]);
  return html`<div class="scroll-frame">
    <div class="scroll" ref=${box} data-state=${conversation.state.value} data-following=${!isBehind}>
      ${conversation.before.value ? html`<${MoreTurns} key=${order[0]} which="Earlier" load=${() => loadEarlier(conversation, hold)} />` : null}
      <div role="log" aria-live="off" aria-label="Conversation">
        ${order.map((id) => html`<${Turn} key=${id} turn=${conversation.turns.get(id)} conversation=${conversation} />`)}
      </div>
      ${conversation.after.value ? html`<${MoreTurns} key=${order.at(-1)} which="Later" load=${() => loadLater(conversation)} />` : null}
    </div>
    ${isBehind ? html`<button type="button" class="to-end" onClick=${toEnd}><span aria-hidden="true">↓</span> To the end</button>` : null}
  </div>`;
}

/** Returns what is called before turns come in front of the `first`: what is read stays where it stands. */
function useHeld(box, first) {
  const held = useRef(null);
  useLayoutEffect(() => {
    const { node, top } = held.current ?? {};
    held.current = null;
    if (node?.isConnected) box.current.scrollTop += (node.getBoundingClientRect().top - top) / (box.current.currentCSSZoom ?? 1); // a scroll is counted before the zoom
  }, [first]);
  return () => {
    const edge = box.current.getBoundingClientRect().top;
    const node = [...box.current.querySelectorAll("article.turn")].find((turn) => turn.getBoundingClientRect().bottom > edge);
    held.current = node ? { node, top: node.getBoundingClientRect().top } : null;
  };
}

/** Keeps the end in view until the reader goes elsewhere; nothing else ever moves the text. */
function useFollowing(box, conversation) {
  const follows = useRef(true);
  const [isBehind, mark] = useState(false);
  const toEnd = async () => {
    if (conversation.after.peek()) await loadLatest(conversation);
    follows.current = true;
    mark(false);
    box.current.scrollTop = box.current.scrollHeight;
  };
  useLayoutEffect(() => {
    const node = box.current;
    restore(node, conversation, follows);
    const look = () => {
      const isAtEnd = !conversation.after.peek() && node.scrollHeight - node.scrollTop - node.clientHeight < NEAR;
      follows.current = isAtEnd;
      mark(!isAtEnd);
      conversation.scrollTop = isAtEnd ? null : node.scrollTop;
    };
    const grow = new ResizeObserver(() => follows.current && !hasSelection(node) && (node.scrollTop = node.scrollHeight));
    grow.observe(node.querySelector("[role=log]"));
    node.addEventListener("scroll", look, { passive: true });
    const leave = () => keepPlace(node, follows.current ? null : conversation.id);
    addEventListener("pagehide", leave);
    return () => (grow.disconnect(), node.removeEventListener("scroll", look), removeEventListener("pagehide", leave));
  }, []);
  const last = conversation.order.value.at(-1);
  const shown = useRef(last);
  useEffect(() => {
    if (last !== shown.current && conversation.turns.get(last)?.peek().phase === "sending") toEnd();
    shown.current = last;
  }, [last]);
  return { isBehind, toEnd };
}

function restore(node, conversation, follows) {
  const place = placeBefore(conversation.id);
  const wanted = place?.queryId ?? decodeURIComponent(location.hash.split("/")[3]?.split("@")[0] ?? "");
  const turn = wanted && node.querySelector(`[data-query="${CSS.escape(wanted)}"]`);
  if (turn) turn.scrollIntoView({ block: "start" });
  else node.scrollTop = conversation.scrollTop ?? node.scrollHeight;
  if (turn && place) node.scrollTop += (turn.getBoundingClientRect().top - node.getBoundingClientRect().top + place.below) / (node.currentCSSZoom ?? 1); // a scroll is counted before the zoom
  follows.current = !turn && conversation.scrollTop == null;
}

/** Keep, through a reload, which turn is at the upper edge and how much of it is above; nothing where the end is shown. */
function keepPlace(node, sessionId) {
  const edge = node.getBoundingClientRect().top;
  const turn = [...node.querySelectorAll("article.turn")].find((one) => one.getBoundingClientRect().bottom > edge);
  if (!sessionId || !turn) sessionStorage.removeItem(KEPT_AS);
  else sessionStorage.setItem(KEPT_AS, JSON.stringify({ sessionId, queryId: turn.dataset.query, below: edge - turn.getBoundingClientRect().top }));
}

/** Where a conversation was left by a reload; it is given once. */
function placeBefore(sessionId) {
  try {
    const place = JSON.parse(sessionStorage.getItem(KEPT_AS) ?? "null");
    if (place?.sessionId !== sessionId) return null;
    sessionStorage.removeItem(KEPT_AS);
    return place;
  } catch {
    return null;
  }
}

function hasSelection(node) {
  const selection = getSelection();
  return Boolean(selection && !selection.isCollapsed && node.contains(selection.anchorNode));
}

/** What the parts of this screen share: reading again when something is remembered, and where the focus goes. */

import { useEffect, useRef } from "../html.js";
import { addressOf } from "../state/screens.js";
import { remembered } from "../state/store.js";

/** Call `reload` when something was remembered, noted or deleted, or a fact changed. @param {() => void} reload */
export function useRemembered(reload) {
  const turn = remembered.value;
  const seen = useRef(turn);
  useEffect(() => {
    if (turn !== seen.current) reload();
    seen.current = turn;
  }, [turn]);
}

/** Give the focus to that when the page is drawn, or to the heading of the screen where it is gone. @param {HTMLElement | null} [wanted] */
export function focusSoon(wanted = null) {
  requestAnimationFrame(() => {
    /** @type {HTMLElement | null} */
    const head = document.querySelector(".screen h1");
    (wanted?.isConnected ? wanted : head)?.focus({ preventScroll: true });
  });
}

/** Give it to the heading only where it would be lost. */
export function keepFocus() {
  requestAnimationFrame(() => document.activeElement === document.body && focusSoon());
}

/** A `ref` of what has the focus as soon as it is there. @param {HTMLElement | null} node */
export const focused = (node) => node?.focus();

/** The address of one exchange. */
export const exchangeAt = (id) => addressOf("memory", "engrams", id);

/** The address of a turn of a conversation. */
export const turnAt = (session, query) => ["#", "c", ...[session, query].filter(Boolean).map(encodeURIComponent)].join("/");

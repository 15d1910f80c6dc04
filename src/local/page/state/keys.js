/** The keyboard. Single letters count only outside of fields, and can be switched off. */

import { signal } from "../html.js";
import { COMMANDS, editLast, stopNow } from "./commands.js";
import { dialog, isInspectorOpen, isRailOpen } from "./store.js";

const KEPT_AS = "local2.letters";
const PAIR_MS = 1200; // how long the first of two letters is remembered

/** Whether single letters do something. */
export const hasLetters = signal(localStorage.getItem(KEPT_AS) !== "off");

export function switchLetters(isOn) {
  hasLetters.value = isOn;
  localStorage.setItem(KEPT_AS, isOn ? "on" : "off");
}

let first = "";
let firstAt = 0;

export function listenToKeys() {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    if ((event.metaKey || event.ctrlKey) && !event.altKey && event.key.toLowerCase() === "k") return use(event, () => (dialog.value = { kind: "palette" }));
    if (event.key === "Escape") return escape(event);
    if (event.metaKey || event.ctrlKey || event.altKey || dialog.peek() || isField(event.target)) return undefined;
    return letter(event);
  });
}

function escape(event) {
  if (dialog.peek()) return undefined; // it closes itself
  if (isRailOpen.peek()) return use(event, () => (isRailOpen.value = false));
  if (stopNow()) return use(event, () => {});
  if (isInspectorOpen.peek()) return use(event, () => (isInspectorOpen.value = false));
  return undefined;
}

function letter(event) {
  if (!hasLetters.peek() || event.key.length !== 1) return undefined;
  const pair = event.timeStamp - firstAt < PAIR_MS ? `${first} ${event.key}` : "";
  const command = find(pair) ?? find(event.key);
  [first, firstAt] = [event.key, event.timeStamp];
  if (command) return use(event, command.run);
  return undefined;
}

function find(keys) {
  return COMMANDS.find((command) => command.keys?.includes(keys) && (command.when?.() ?? true));
}

function isField(target) {
  return target instanceof Element && target.matches("input, textarea, select, [contenteditable]");
}

function use(event, act) {
  event.preventDefault();
  act();
}

/** `↑` in an empty composer. */
export { editLast };

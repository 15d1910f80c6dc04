/** What a reader has opened or folded in conversations; it survives a reload of the tab. */

import { useState } from "../html.js";

const KEPT_AS = "local2.folds";
const MOST = 400;
/** Whether it is open, by the name of the part. @type {Map<string, boolean>} */
const folds = new Map(read());

function read() {
  try {
    return JSON.parse(sessionStorage.getItem(KEPT_AS) ?? "[]");
  } catch {
    return [];
  }
}

/** Undefined where nobody has opened or folded it. @param {string} name */
export const foldOf = (name) => folds.get(name);

/** @param {string} name @param {boolean} isOpen */
export function keepFold(name, isOpen) {
  folds.delete(name);
  folds.set(name, isOpen);
  for (const [oldest] of folds) if (folds.size > MOST) folds.delete(oldest);
  sessionStorage.setItem(KEPT_AS, JSON.stringify([...folds]));
}

/** Whether a part is open, and what opens or folds it. @param {string} name @returns {[boolean, (isOpen: boolean) => void]} */
export function useFold(name) {
  const [isOpen, put] = useState(folds.get(name) ?? false);
  return [isOpen, (next) => (keepFold(name, next), put(next))];
}

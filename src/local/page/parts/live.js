/** What is read again whenever a participant says that something has changed. */

import { useEffect, useRef } from "../html.js";
import { participants } from "../state/store.js";

/** Call `reload` when the counters of a participant change; its signs of life are the owner's alone.
 * @param {string} name @param {() => void} reload */
export function useLive(name, reload) {
  const row = participants.value.get(name);
  const said = JSON.stringify([row?.counters ?? null, row?.state ?? null]);
  const before = useRef(said);
  useEffect(() => {
    if (before.current !== said) reload();
    before.current = said;
  }, [said]);
}

const SHOW_MS = 100; // nobody reads faster, and drawing a list costs more than all messages in between

/** Call `later` for each thing that comes: `show` follows for all of them together, at most ten times a second.
 * @param {() => void} show */
export function together(show) {
  let timer = 0;
  const later = () => void (timer ||= setTimeout(() => ((timer = 0), show()), SHOW_MS));
  return { later, stop: () => clearTimeout(timer) };
}

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

/** Removes several conversations, after it has said how many. */

import { html, useLayoutEffect, useState } from "../html.js";
import { counted } from "../core/words.js";
import { go } from "../state/actions.js";
import { deleteSessions } from "../state/many.js";
import { currentId, picked, sessions } from "../state/store.js";

export function DeleteManyDialog({ sessionIds, close }) {
  const [isWorking, work] = useState(false);
  const [trouble, fail] = useState("");
  useLayoutEffect(() => document.querySelector("dialog [data-first]")?.["focus"](), []); // it is fetched after the dialog has opened
  const count = counted(sessionIds.length, "conversation");
  const remove = async () => {
    work(true);
    try {
      await deleteSessions(sessionIds);
      if (!sessions.peek().has(currentId.peek())) go(null);
      picked.value = null;
      close();
    } catch (failure) {
      fail(failure.message);
    }
    work(false);
  };
  return html`<h2 id="dialog-title">Delete ${count}?</h2>
    <p>Their questions and answers are deleted permanently, also from the journal and the memory.</p>
    ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
    <div class="dialog-acts"><button type="button" data-first onClick=${close}>Cancel</button>
      <button type="button" class="bad" disabled=${isWorking} onClick=${() => void remove()}>${isWorking ? "Deleting…" : `Delete ${count}`}</button></div>`;
}

/** Removes a conversation, and then says who may repeat it. */

import { html, useLayoutEffect, useState } from "../html.js";
import { deleteSession, isVersion } from "../state/listing.js";
import { currentId, sessions } from "../state/store.js";
import { counted } from "../core/words.js";
import { go } from "../state/actions.js";
import { Repeated } from "./repeated.js";

export function DeleteDialog({ sessionId, close }) {
  const [step, put] = useState({ name: "ask" });
  useLayoutEffect(() => document.querySelector("dialog [data-first]")?.["focus"](), []); // it is fetched after the dialog has opened
  const [title] = useState(sessions.value.get(sessionId)?.title || "this conversation");
  const remove = async () => {
    put({ name: "working" });
    const isShown = isVersion(currentId.peek(), sessionId);
    try {
      const done = await deleteSession(sessionId);
      if (isShown) go(null);
      if (done.repeated_in && !done.repeated_in.length && !done.copied_to?.length) close();
      else put({ name: "done", done });
    } catch (failure) {
      put({ name: "ask", trouble: failure.message });
    }
  };
  if (step.name === "done") return html`<${Done} done=${step.done} close=${close} />`;
  return html`<h2 id="dialog-title">Delete “${title}”?</h2>
    <p>Its questions and answers are deleted permanently in all versions, also from the journal and the memory.</p>
    ${step.trouble ? html`<p class="trouble" role="alert">${step.trouble}</p>` : null}
    <div class="dialog-acts"><button type="button" data-first onClick=${close}>Cancel</button>
      <button type="button" class="bad" disabled=${step.name === "working"} onClick=${() => void remove()}>${step.name === "working" ? "Deleting…" : "Delete"}</button></div>`;
}

function Done({ done, close }) {
  return html`<h2 id="dialog-title">Deleted</h2>
    ${done.repeated_in === null
      ? html`<p>The memory is not running, so it is unknown whether other answers repeat it.</p>`
      : done.repeated_in.length
        ? html`<p>Other answers recalled parts of it and may repeat them:</p><${Repeated} ids=${done.repeated_in} />`
        : null}
    ${done.copied_to?.length ? html`<p>${counted(done.copied_to.length, "conversation")} that branched off ${done.copied_to.length === 1 ? "keeps its copy" : "keep their copies"} of the turns before that.</p>` : null}
    <div class="dialog-acts"><button type="button" data-first onClick=${close}>Close</button></div>`;
}

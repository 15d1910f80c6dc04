/** Gives a conversation another title. */

import { html, useState } from "../html.js";
import { changeSession } from "../state/listing.js";
import { sessions } from "../state/store.js";

export function RenameDialog({ sessionId, close }) {
  const [title, put] = useState(sessions.value.get(sessionId)?.title ?? "");
  const [trouble, fail] = useState("");
  const save = async (event) => {
    event.preventDefault();
    try {
      await changeSession(sessionId, { title: title.trim() || null });
      close();
    } catch (failure) {
      fail(failure.message);
    }
  };
  return html`<form onSubmit=${save}><h2 id="dialog-title">Rename</h2>
    <label class="field">Title <input maxlength="200" data-first dir="auto" value=${title} onInput=${(event) => put(event.target.value)} /></label>
    <p class="help">Empty: the title that the model made, else the first question.</p>
    ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
    <div class="dialog-acts"><button type="button" onClick=${close}>Cancel</button><button class="accent" type="submit">Save</button></div>
  </form>`;
}

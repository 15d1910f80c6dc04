/** Puts conversations into a folder. */

import { html, useLayoutEffect, useState } from "../html.js";
import { counted } from "../core/words.js";
import { changeSessions } from "../state/many.js";
import { folderNames, sessions } from "../state/store.js";

export function MoveDialog({ sessionIds, close }) {
  const [folder, put] = useState(sessions.value.get(sessionIds[0])?.folder ?? "");
  const [trouble, fail] = useState("");
  useLayoutEffect(() => document.querySelector("dialog [data-first]")?.["focus"](), []); // it is fetched after the dialog has opened
  const names = [...new Set([...folderNames.value, ...[...sessions.value.values()].map((one) => one.folder).filter(Boolean)])].sort();
  const move = (event) => {
    event.preventDefault();
    changeSessions(sessionIds, { folder: folder.trim() || null }).then(close, (failure) => fail(failure.message));
  };
  return html`<form onSubmit=${move}><h2 id="dialog-title">Move ${sessionIds.length > 1 ? counted(sessionIds.length, "conversation") : "to folder"}</h2>
    <label class="field">Folder <input maxlength="80" data-first dir="auto" list="folders" value=${folder} onInput=${(event) => put(event.target.value)} /></label>
    <datalist id="folders">${names.map((name) => html`<option value=${name}></option>`)}</datalist>
    <p class="help">A new name makes a folder. Empty: out of its folder.</p>
    ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
    <div class="dialog-acts"><button type="button" onClick=${close}>Cancel</button><button class="accent" type="submit">Move</button></div>
  </form>`;
}

/** Renames a folder, or dissolves it; its conversations stay. */

import { html, useLayoutEffect, useState } from "../html.js";
import { changeFolder } from "../state/many.js";

export function FolderDialog({ name, close }) {
  const [typed, type] = useState(name);
  const [state, put] = useState({ isBusy: false, trouble: "" });
  useLayoutEffect(() => document.querySelector("dialog [data-first]")?.["focus"](), []); // it is fetched after the dialog has opened
  const change = (to) => {
    put({ isBusy: true, trouble: "" });
    return changeFolder(name, to).then(close, (failure) => put({ isBusy: false, trouble: failure.message }));
  };
  const save = (event) => {
    event.preventDefault();
    if (typed.trim() && typed.trim() !== name) void change(typed.trim());
    else close();
  };
  return html`<form onSubmit=${save}><h2 id="dialog-title" dir="auto">Folder “${name}”</h2>
    <label class="field">Name <input maxlength="80" data-first dir="auto" value=${typed} onInput=${(event) => type(event.target.value)} /></label>
    <p class="help">The name of another folder joins the two. To dissolve a folder deletes nothing: its conversations are listed by their day again.</p>
    ${state.trouble ? html`<p class="trouble" role="alert">${state.trouble}</p>` : null}
    <div class="dialog-acts"><button type="button" disabled=${state.isBusy} onClick=${() => void change(null)}>Dissolve</button><span class="push"></span><button type="button" onClick=${close}>Cancel</button><button class="accent" type="submit" disabled=${state.isBusy}>Save</button></div>
  </form>`;
}

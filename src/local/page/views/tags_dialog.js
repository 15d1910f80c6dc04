/** The tags of one conversation, or tags to add to several and take from them. */

import { html, useLayoutEffect, useState } from "../html.js";
import { tagsIn } from "../core/session_list.js";
import { counted } from "../core/words.js";
import { changeSessions, setTags } from "../state/many.js";
import { sessions } from "../state/store.js";

export function TagsDialog({ sessionIds, close }) {
  const isOne = sessionIds.length === 1;
  const [added, add] = useState(isOne ? (sessions.value.get(sessionIds[0])?.tags ?? []).join(", ") : "");
  const [removed, remove] = useState("");
  const [trouble, fail] = useState("");
  useLayoutEffect(() => document.querySelector("dialog [data-first]")?.["focus"](), []); // it is fetched after the dialog has opened
  const save = (event) => {
    event.preventDefault();
    const change = { add_tags: tagsIn(added), remove_tags: tagsIn(removed) };
    const saving = isOne ? setTags(sessionIds[0], added) : changeSessions(sessionIds, change);
    saving.then(close, (failure) => fail(failure.message));
  };
  return html`<form onSubmit=${save}><h2 id="dialog-title">Tags${isOne ? "" : ` of ${counted(sessionIds.length, "conversation")}`}</h2>
    <label class="field">${isOne ? "Tags" : "Add"} <input data-first dir="auto" value=${added} onInput=${(event) => add(event.target.value)} /></label>
    ${isOne ? null : html`<label class="field">Take away <input dir="auto" value=${removed} onInput=${(event) => remove(event.target.value)} /></label>`}
    <p class="help">Separate them with commas.</p>
    ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
    <div class="dialog-acts"><button type="button" onClick=${close}>Cancel</button><button class="accent" type="submit">Save</button></div>
  </form>`;
}

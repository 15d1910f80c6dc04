/** What can be done to the conversations that are selected. */

import { html } from "../html.js";
import { counted } from "../core/words.js";
import { changeSessions, exportSessions } from "../state/many.js";
import { choice, dialog, picked, tell } from "../state/store.js";

export function PickedBar() {
  const ids = [...picked.value];
  const isArchived = choice.value.kind === "archived";
  const over = (kind) => () => (dialog.value = { kind, sessionIds: ids });
  const attempt = (work) => () => void work().catch((failure) => tell(`That was not done: ${failure.message}`));
  const end = () => {
    picked.value = null;
    document.querySelector(".rail .acts .menu > button")?.["focus"]();
  };
  const archive = async () => {
    await changeSessions(ids, { archived: !isArchived });
    end();
  };
  const isNone = !ids.length;
  return html`<div class="picked" role="group" aria-label="Selected conversations">
    <span role="status">${isNone ? "Select conversations" : `${counted(ids.length, "conversation")} selected`}</span>
    <button type="button" disabled=${isNone} onClick=${attempt(archive)}>${isArchived ? "Back to the list" : "Archive"}</button>
    <button type="button" disabled=${isNone} onClick=${over("move")}>Move</button>
    <button type="button" disabled=${isNone} onClick=${over("tags")}>Tag</button>
    <button type="button" disabled=${isNone} onClick=${attempt(() => exportSessions(ids))}>Export</button>
    <button type="button" class="bad" disabled=${isNone} onClick=${over("deleteMany")}>Delete</button>
    <button type="button" onClick=${end}>Done</button>
  </div>`;
}

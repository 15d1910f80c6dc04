/** What concerns the whole page, above the conversation: no connection, a newer version, a notice. */

import { html } from "../html.js";
import { moment } from "../core/words.js";
import { isOutdated, notices, now, offlineSince } from "../state/store.js";
import { SignInBar } from "./token_form.js";
import { SetUpNote } from "./set_up_note.js";
import { SystemNote } from "./system_note.js";

export function Bars() {
  return html`<div class="bars">
    <${SignInBar} />
    ${offlineSince.value !== null
      ? html`<p class="bar-note bad" role="status" data-state="offline"><b>Not connected</b> since ${moment(offlineSince.value, now.value)}. You can still read this page. Messages are sent after the connection is back.</p>`
      : null}
    ${isOutdated.value
      ? html`<p class="bar-note" role="status"><b>LoCAL2 was updated.</b> <button type="button" onClick=${() => location.reload()}>Load the new page</button></p>`
      : null}
    <${SystemNote} />
    <${SetUpNote} />
    ${notices.value.map((notice) => html`<${Notice} key=${notice.id} notice=${notice} />`)}
  </div>`;
}

function Notice({ notice }) {
  const away = () => (notices.value = notices.value.filter((one) => one.id !== notice.id));
  return html`<p class="bar-note" role="status"><span>${notice.text}</span>
    ${notice.action ? html`<button type="button" onClick=${notice.action.run}>${notice.action.title}</button>` : null}
    <button type="button" aria-label="Close this notice" onClick=${away}>Close</button></p>`;
}

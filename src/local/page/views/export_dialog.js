/** Saves a conversation as a file. */

import { html, useState } from "../html.js";
import { exportSession } from "../state/listing.js";

const FORMATS = [["markdown", "Markdown", "to read"], ["json", "JSON", "all recorded data"]];

export function ExportDialog({ sessionId, close }) {
  const [format, choose] = useState("markdown");
  const [trouble, fail] = useState("");
  const save = (event) => {
    event.preventDefault();
    exportSession(sessionId, format).then(close, (failure) => fail(failure.message));
  };
  return html`<form onSubmit=${save}><h2 id="dialog-title">Export</h2>
    <fieldset><legend class="unseen">Format</legend>${FORMATS.map(
      ([value, title, help]) => html`<label class="choice"><input type="radio" name="format" checked=${format === value} onChange=${() => choose(value)} /> <b>${title}</b> <small>${help}</small></label>`
    )}</fieldset>
    ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
    <div class="dialog-acts"><button type="button" onClick=${close}>Cancel</button><button class="accent" type="submit">Save file</button></div>
  </form>`;
}

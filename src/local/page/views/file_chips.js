/** The files of a draft. */

import { html } from "../html.js";
import { bytes } from "../core/words.js";
import { detach } from "../state/files.js";
import { Thumbnail } from "./thumbnail.js";

export function FileChips({ sessionId, files }) {
  if (!files.length) return null;
  return html`<ul class="chips" aria-label="Files">${files.map(
    (file) => html`<li key=${file.key} class="chip" data-state=${file.state}>
      ${file.id && (file.media_type ?? "").startsWith("image/") ? html`<${Thumbnail} id=${file.id} name=${file.name} />` : null}<span class="name" title=${file.name}>${file.name}</span>
      <small>${file.state === "failed" ? file.trouble : file.state === "sending" ? "sending…" : (file.note || bytes(file.size))}</small>
      ${file.state === "failed" && file.again ? html`<button type="button" class="quiet" onClick=${file.again}>Try again</button>` : null}
      <button type="button" class="quiet" aria-label=${`Remove ${file.name}`} onClick=${() => detach(sessionId, file.key)}>×</button>
    </li>`
  )}</ul>`;
}

/** What a call has changed in the workspace: shown as a diff, and undone. */

import { html, useState } from "../html.js";
import { request } from "../net/api.js";

export function Changes({ call }) {
  const [found, keep] = useState(null);
  const [fault, tell] = useState("");
  const attempt = async (work) => {
    tell("");
    try {
      keep(await work());
    } catch (failure) {
      tell(failure.message);
    }
  };
  const show = async () => (await request("GET", `/changes?call_id=${encodeURIComponent(call.call_id)}`)).changes;
  const undo = async () => (await request("POST", "/changes/undo", { call_id: call.call_id })).undone;
  const isUndone = found?.length > 0 && found.every((change) => change.undone);
  return html`<div class="changes" role="group" aria-label="Changes of this call">
    <button type="button" class="quiet" aria-expanded=${found !== null} onClick=${() => (found ? keep(null) : void attempt(show))}>Changes</button>
    ${found && !isUndone && found.length ? html`<button type="button" onClick=${() => void attempt(undo)}>Undo</button>` : null}
    <span role="status">${isUndone ? "Undone: the file was restored." : found?.length === 0 ? "The changes are no longer stored." : ""}</span>
    ${fault ? html`<p class="call-error" role="alert">${fault}</p>` : null}
    ${found?.map((change) => html`<pre key=${change.path} class="diff" tabindex="0" dir="ltr" aria-label=${`${change.path}, ${change.what}`}>${lines(change.diff)}</pre>`)}
  </div>`;
}

export function lines(diff) {
  return diff.split("\n").map((line, number) => html`<span key=${number} class=${number < HEAD ? "place" : (KINDS[line[0]] ?? "")}>${line}${"\n"}</span>`);
}

const HEAD = 2; // lines, which name the file before and after
const KINDS = { "+": "added", "-": "removed", "@": "place" };

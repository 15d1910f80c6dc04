/** Imports conversations from a file that another program has exported, after it has said how many there are. */

import { html, useLayoutEffect, useState } from "../html.js";
import { counted } from "../core/words.js";
import { request } from "../net/api.js";
import { loadList } from "../state/listing.js";
import { tell } from "../state/store.js";

const SHOWN = 5;

export function ImportDialog({ close }) {
  const [file, choose] = useState(/** @type {File | null} */ (null));
  const [found, put] = useState(null);
  const [doing, work] = useState("");
  const [trouble, fail] = useState("");
  useLayoutEffect(() => document.querySelector("dialog [data-first]")?.["focus"](), []); // it is fetched after the dialog has opened
  const read = async (chosen) => {
    choose(chosen);
    put(null);
    fail("");
    if (!chosen) return;
    work("Reading the file…");
    await send("?preview=true", chosen).then(put, (failure) => fail(failure.message));
    work("");
  };
  const bring = async () => {
    work(`Importing ${counted(found.new, "conversation")}…`);
    try {
      const done = await send("", file);
      void loadList();
      tell(`${counted(done.imported, "conversation")} imported from ${done.sources.join(", ")}.`);
      close();
    } catch (failure) {
      fail(failure.message);
    }
    work("");
  };
  return html`<h2 id="dialog-title">Import conversations</h2>
    <label class="field">File <input type="file" accept=".json,.zip,application/json,application/zip" data-first disabled=${doing !== ""} onChange=${(event) => void read(event.target.files[0] ?? null)} /></label>
    <p class="help">An export of ChatGPT (<code>conversations.json</code>, or the ZIP file that it is in), Open WebUI, LibreChat or LoCAL2. The text of questions and answers is imported, files are not.</p>
    ${found ? html`<${Found} found=${found} />` : null}
    ${doing ? html`<p role="status">${doing}</p>` : null}
    ${trouble ? html`<p class="trouble" role="alert">${trouble}</p>` : null}
    <div class="dialog-acts"><button type="button" onClick=${close}>Cancel</button>
      <button type="button" class="accent" disabled=${!found?.new || doing !== ""} onClick=${() => void bring()}>${found?.new ? `Import ${counted(found.new, "conversation")}` : "Import"}</button></div>`;
}

function send(query, file) {
  return request("POST", `/sessions/import${query}`, undefined, { file });
}

function Found({ found }) {
  const others = found.new - Math.min(found.new, SHOWN);
  return html`<div role="status">
    <p><b>${counted(found.new, "conversation")}</b> with ${counted(found.turns, "question")} from ${found.sources.join(", ")}.${found.known ? ` ${found.known} of ${found.found} are here already.` : ""}${found.cut ? ` The first ${counted(found.cut, "question")} of very long conversations are left out.` : ""}</p>
    ${found.new ? html`<ul class="bullets">${found.conversations.slice(0, SHOWN).map((one) => html`<li key=${one.session_id} dir="auto">${one.title || "Untitled"} <small>(${one.turns})</small></li>`)}${others ? html`<li>and ${others} more</li>` : null}</ul>` : null}
    ${found.left_out.map((one) => html`<p class="trouble">Left out: <span dir="auto">${one.title || "a part of the file"}</span>: ${one.reason}.</p>`)}
    ${found.new ? html`<p class="help">What another program has written is untrusted content: in these conversations tools ask more often.</p>` : null}
  </div>`;
}

/** What the assistant has written down; what was replaced or withdrawn can hold again. */

import { html, useState } from "../html.js";
import { lineOf } from "../core/memory.js";
import { ago, moment } from "../core/words.js";
import { request } from "../net/api.js";
import { Example } from "../parts/example.js";
import { Button } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { Table } from "../parts/table.js";
import { addressOf } from "../state/screens.js";
import { dialog, now, spoken } from "../state/store.js";
import { exchangeAt, focusSoon, useRemembered } from "./live.js";

export function NoteTable() {
  const [isWhole, show] = useState(false);
  const { data, trouble, reload } = useResource(`/memory/notes${isWhole ? "?history=true" : ""}`);
  const [failure, fail] = useState(null);
  useRemembered(reload);
  if (trouble && !data) return html`<${Trouble} text="The notes could not be read." failure=${trouble} act=${reload} />`;
  const restore = (note) => request("POST", `/memory/${encodeURIComponent(note.engram_id)}/restore`).then(() => (fail(null), (spoken.value = "Restored"), reload(), focusSoon()), fail);
  const remove = (note) => (dialog.value = { kind: "forget", engramId: note.engram_id, text: lineOf(note), done: () => (reload(), focusSoon()) });
  const columns = [
    { id: "note", title: "Note", value: lineOf, isWide: true, show: (note) => html`<a class=${note.superseded_by ? "old" : null} href=${exchangeAt(note.engram_id)}>${lineOf(note)}</a>${note.tainted ? html` <span class="tag">with untrusted content</span>` : null}${note.superseded_by ? html` <small>no longer holds</small>` : null}` },
    { id: "category", title: "Category", value: (note) => note.query, show: (note) => note.query || html`<span class="none">–</span>` },
    { id: "written", title: "Written", value: (note) => -note.asked_at, show: (note) => html`<span class="age" title=${moment(note.asked_at, now.value)}>${ago(now.value - note.asked_at)}</span>` },
    { id: "acts", title: "Actions", show: (note) => html`<span class="row-acts">${note.superseded_by ? html`<${Button} label=${`Restore ${lineOf(note)}`} act=${() => restore(note)}>Restore</${Button}>` : null}<button type="button" class="edged bad" aria-haspopup="dialog" aria-label=${`Delete ${lineOf(note)}`} onClick=${() => remove(note)}>Delete…</button></span>` },
  ];
  return html`<div class="acts-above"><label class="switch"><input type="checkbox" checked=${isWhole} onChange=${(event) => show(event.target.checked)} /> Show what was replaced or withdrawn</label></div>
    ${failure ? html`<${Trouble} text="The note was not restored." failure=${failure} label="Reload" act=${() => (fail(null), reload())} />` : null}
    ${trouble ? html`<${Trouble} text="The notes could not be read again." failure=${trouble} act=${reload} />` : null}
    ${!data ? html`<${Loading} />` : data.notes.length ? html`<${Table} label="Notes" columns=${columns} rows=${data.notes} keyOf=${(note) => note.engram_id} />
      <p class="more-rows"><small>The words of a note are changed in <a href=${addressOf("memory", "file")}>MEMORY.md</a>.</small></p>` : html`<${Empty}>Nothing is noted yet: the assistant writes down what is worth keeping.<${Example} ask="Note that Lina has the spare key." /></${Empty}>`}`;
}

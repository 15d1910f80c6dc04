/** Who takes part, as the stream has it: each with its state, and what can be done with it. */

import { html } from "../html.js";
import { Button } from "../parts/field.js";
import { Loading } from "../parts/notes.js";
import { Table } from "../parts/table.js";
import { inspect } from "../state/inspection.js";
import { participants } from "../state/store.js";
import { control } from "../state/system.js";

const COLUMNS = [
  { id: "name", title: "Participant", value: (row) => row.name, show: ({ name }) => html`<button type="button" class="quiet link" onClick=${() => inspect({ kind: "participant", name }, "story")}>${name}</button>` },
  { id: "kind", title: "Kind", value: (row) => row.kind },
  { id: "state", title: "State", value: (row) => row.state, show: (row) => html`<span class="dot" data-state=${row.state} aria-hidden="true"></span> ${row.state}${row.detail ? html` <small>${row.detail}</small>` : null}` },
  { id: "restarts", title: "Restarts", value: (row) => row.restarts ?? 0, isNumber: true },
  { id: "acts", title: "Actions", show: (row) => html`<${Acts} row=${row} />` },
];

export function Participants() {
  const rows = [...participants.value.values()];
  if (!rows.length) return html`<${Loading} />`;
  return html`<${Table} label="Participants" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.name} />`;
}

/** The proxy carries everything, so it is not stopped from here. */
function Acts({ row: { name, kind, state } }) {
  if (kind === "proxy") return html`<small>always on</small>`;
  const isOff = state === "stopped" || state === "failed";
  const act = (verb, title) => html`<${Button} kind="quiet edged" label=${`${title} ${name}`} act=${() => control(verb, name)}>${title}</${Button}>`;
  return html`<div class="row-acts">${isOff ? act("start", "Start") : html`${act("restart", "Restart")} ${act("stop", "Stop")}`}</div>`;
}

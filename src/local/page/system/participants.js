/** Who takes part, as the stream has it: each with its state, and what can be done with it. */

import { html } from "../html.js";
import { figure } from "../core/words.js";
import { ConfirmButton } from "../parts/confirm.js";
import { Button } from "../parts/field.js";
import { Loading } from "../parts/notes.js";
import { Table } from "../parts/table.js";
import { inspect } from "../state/inspection.js";
import { addressOf, hasScreen } from "../state/screens.js";
import { participants } from "../state/store.js";
import { control, ownerRequest } from "../state/system.js";

const COLUMNS = [
  { id: "name", title: "Participant", value: (row) => row.name, show: ({ name }) => html`<${Name} name=${name} />` },
  { id: "kind", title: "Kind", value: (row) => row.kind },
  { id: "state", title: "State", value: (row) => row.state, show: (row) => html`<span class="dot" data-state=${row.state} aria-hidden="true"></span> ${row.state}${row.detail ? html` <small>${row.detail}</small>` : null}` },
  { id: "handled", title: "Handled", value: (row) => row.counters?.handled ?? 0, show: (row) => figure(row.counters?.handled ?? 0), isNumber: true },
  { id: "failed", title: "Failed", value: (row) => row.counters?.failed ?? 0, show: (row) => figure(row.counters?.failed ?? 0), isNumber: true },
  { id: "restarts", title: "Restarts", value: (row) => row.restarts ?? 0, isNumber: true },
  { id: "acts", title: "Actions", show: (row) => html`<${Acts} row=${row} />` },
];

export function Participants() {
  const rows = [...participants.value.values()];
  if (!rows.length) return html`<${Loading} />`;
  return html`<${Table} label="Participants" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.name} />`;
}

/** Its own panel, where the page has one; else the inspector tells of it. */
function Name({ name }) {
  if (hasScreen("participants")) return html`<a href=${addressOf("participants", name)}>${name}</a>`;
  return html`<button type="button" class="quiet link" onClick=${() => inspect({ kind: "participant", name }, "story")}>${name}</button>`;
}

/** The proxy carries everything, so it is not stopped from here. */
function Acts({ row: { name, kind, state } }) {
  if (kind === "proxy") return html`<small>always on</small>`;
  if (state === "stopped" || state === "failed") return html`<div class="row-acts"><${Button} kind="quiet edged" label=${`Start ${name}`} act=${() => control("start", name)}>Start<//></div>`;
  return html`<div class="row-acts"><${Button} kind="quiet edged" label=${`Restart ${name}`} act=${() => control("restart", name)}>Restart<//>
    <${ConfirmButton} kind="quiet edged" label=${`Stop ${name}`} title=${`Stop ${name}?`} verb="Stop" text=${`What only ${name} does is not done until you start it again. What it has in hand is given up or waits.`} act=${() => ownerRequest("POST", `/participants/${encodeURIComponent(name)}/stop`)}>Stop<//></div>`;
}

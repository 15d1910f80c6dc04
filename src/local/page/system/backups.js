/** Backups: made here while the system runs; put back by a command, which needs it stopped. */

import { html, useState } from "../html.js";
import { bytes, figure, moment } from "../core/words.js";
import { Button } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { Table } from "../parts/table.js";
import { now } from "../state/store.js";
import { ownerRequest } from "../state/system.js";
import { CopyButton } from "../views/copy_button.js";

/** A path for a shell of Unix. */
const quoted = (path) => (/^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`);

const COLUMNS = [
  { id: "made_at", title: "Made", value: (row) => row.made_at, show: (row) => moment(row.made_at, now.value) },
  { id: "files", title: "Files", value: (row) => row.files, show: (row) => figure(row.files), isNumber: true },
  { id: "size", title: "Size", value: (row) => row.size, show: (row) => (row.size === null ? "–" : bytes(row.size)), isNumber: true },
  { id: "folder", title: "To restore it", show: ({ folder }) => html`<${Command} text=${`local2 restore ${quoted(folder)} --force`} />`, isWide: true },
];

export function Backups() {
  const { data, trouble, reload } = useResource("/backups");
  const [state, put] = useState({ made: "", failure: null });
  const make = () =>
    ownerRequest("POST", "/backups").then(
      ({ backup }) => (put({ made: backup.folder, failure: null }), reload()),
      (failure) => put({ made: "", failure })
    );
  return html`<p>A backup has the conversations, the memory, the journal and the attachments. It leaves out your workspace, models, settings, secrets and tokens.</p>
    <div class="deeds"><${Button} kind="accent" act=${make}>Back up now<//></div>
    ${state.made ? html`<p role="status">The backup is complete: <code>${state.made}</code></p>` : null}
    ${state.failure ? html`<${Trouble} text="The backup was not made." failure=${state.failure} label="Try again" act=${() => void make()} />` : null}
    ${trouble ? html`<${Trouble} text="The backups could not be listed." failure=${trouble} act=${reload} />` : null}
    ${data ? html`<${Made} data=${data} />` : trouble ? null : html`<${Loading} />`}`;
}

function Made({ data: { folder, backups } }) {
  return html`${backups.length ? html`<${Table} label="Backups" columns=${COLUMNS} rows=${backups} keyOf=${(row) => row.folder} />
      <p class="sum">To restore one, stop LoCAL2 and run its command in a terminal. What you have now is moved aside, not deleted.</p>` : html`<${Empty}>There is no backup yet. “Back up now” makes one while LoCAL2 goes on.<//>`}
    <p class="sum">Backups are stored in <code>${folder}</code>. For another place, such as another disk, run <code>local2 backup FOLDER</code>. To remove one, delete its folder.</p>`;
}

export function Command({ text }) {
  return html`<code>${text}</code> <${CopyButton} text=${text} what="command" />`;
}

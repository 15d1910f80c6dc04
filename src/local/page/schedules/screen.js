/** The jobs that ask questions at set times. */

import { html } from "../html.js";
import { moment } from "../core/words.js";
import { Button } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { Table } from "../parts/table.js";
import { now } from "../state/store.js";

const COLUMNS = [
  { id: "name", title: "Job", value: (row) => row.name || row.prompt, isWide: true },
  { id: "schedule", title: "Schedule", value: (row) => row.schedule, show: (row) => html`<code>${row.schedule}</code>` },
  { id: "next", title: "Next run", value: (row) => row.next_at, show: (row) => (row.next_at ? moment(row.next_at, now.value) : "none") },
  { id: "state", title: "State", value: (row) => (row.enabled ? "active" : "paused") },
];

export function Screen() {
  const { data, trouble, reload } = useResource("/cron");
  return html`<${ScreenHead} title="Schedules" text="Questions that LoCAL2 asks by itself at set times."><${Button} act=${reload}>Reload</${Button}></${ScreenHead}>
    ${trouble ? html`<${Trouble} text="The jobs could not be read." failure=${trouble} act=${reload} />` : null}
    ${data?.jobs.length ? html`<${Table} label="Jobs" columns=${COLUMNS} rows=${data.jobs} keyOf=${(row) => row.job_id} />` : null}
    ${data && !data.jobs.length ? html`<${Empty}>There is no job. <code>local2 cron add</code> creates one, or ask for one in a conversation.</${Empty}>` : data || trouble ? null : html`<${Loading} />`}`;
}

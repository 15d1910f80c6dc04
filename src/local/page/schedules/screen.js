/** The jobs that ask questions at set times. */

import { html, useState } from "../html.js";
import { scheduleWords } from "../core/schedule_words.js";
import { Example } from "../parts/example.js";
import { Button } from "../parts/field.js";
import { useLive } from "../parts/live.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { Table } from "../parts/table.js";
import { addressOf } from "../state/screens.js";
import { JobActs } from "./acts.js";
import { JobDetail } from "./job.js";
import { JobForm } from "./job_form.js";
import { Next } from "./next.js";

/** @param {{path: string[]}} given */
export function Screen({ path: [id = "", part = ""] }) {
  if (id === "new") return html`<${JobForm} />`;
  if (id && part === "change") return html`<${Changed} key=${id} id=${id} />`;
  if (id) return html`<${JobDetail} key=${id} id=${id} />`;
  return html`<${Jobs} />`;
}

/** The form of a job that there is. */
function Changed({ id }) {
  const { data, trouble, reload } = useResource("/cron");
  const job = data?.jobs.find((one) => one.job_id === id);
  if (job) return html`<${JobForm} job=${job} />`;
  return html`<${ScreenHead} title="Change a schedule" />
    ${trouble || data ? html`<${Trouble} text=${data ? "There is no such job. It may have been removed." : "The job could not be read."} failure=${trouble} act=${reload} />` : html`<${Loading} />`}`;
}

function Jobs() {
  const { data, trouble, reload } = useResource("/cron");
  const [failure, fail] = useState(null);
  useLive("cron", reload);
  const columns = [
    { id: "name", title: "Job", value: (row) => row.name, show: (row) => html`<a href=${addressOf("schedules", row.job_id)}>${row.name}</a>`, isWide: true },
    { id: "schedule", title: "When", value: (row) => row.schedule, show: (row) => scheduleWords(row.schedule) || html`<code>${row.schedule}</code>` },
    { id: "next", title: "Next run", value: (row) => row.next_at ?? Infinity, show: (row) => html`<${Next} job=${row} />` },
    { id: "acts", title: "Actions", show: (row) => html`<${JobActs} job=${row} done=${reload} fail=${fail} />` },
  ];
  return html`<${ScreenHead} title="Schedules" text="Questions that LoCAL2 asks at set times."><${Button} act=${reload}>Reload</${Button}><a class="as-button accent" href=${addressOf("schedules", "new")}>New schedule</a></${ScreenHead}>
    ${trouble ? html`<${Trouble} text="The jobs could not be read." failure=${trouble} act=${reload} />` : null}
    ${failure ? html`<${Trouble} text="The job was not changed." failure=${failure} label="Close" act=${() => fail(null)} />` : null}
    ${data?.jobs.length ? html`<${Table} label="Jobs" columns=${columns} rows=${data.jobs} keyOf=${(row) => row.job_id} />` : null}
    ${data && !data.jobs.length ? html`<${Empty}>There is no job yet: a job asks its question at set times.<${Example} ask="Every morning at 8, tell me what is new in space flight." /></${Empty}>` : data || trouble ? null : html`<${Loading} />`}`;
}

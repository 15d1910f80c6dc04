/** What can be done with a job. */

import { html } from "../html.js";
import { ConfirmButton } from "../parts/confirm.js";
import { Button } from "../parts/field.js";
import { request } from "../net/api.js";

/** @param {{job: any, done: () => void, fail: (failure: any) => void, gone?: () => void, kind?: string}} given `gone` is
 * called after it was removed */
export function JobActs({ job, done, fail, gone = done, kind = "quiet edged" }) {
  const path = `/cron/${encodeURIComponent(job.job_id)}`;
  const act = (method, more, body) => request(method, `${path}${more}`, body).then(() => (fail(null), done()), fail);
  return html`<div class="row-acts job-acts">
    <${Button} kind=${kind} label=${`Run ${job.name} now`} act=${() => act("POST", "/run")}>Run now</${Button}>
    <${Button} kind=${kind} label=${`${job.enabled ? "Pause" : "Resume"} ${job.name}`} act=${() => act("PATCH", "", { enabled: !job.enabled })}>${job.enabled ? "Pause" : "Resume"}</${Button}>
    <${ConfirmButton} kind=${kind} label=${`Remove ${job.name}`} title=${`Remove “${job.name}”?`} verb="Remove it" text="The job and the list of its runs are removed. The conversations of its runs stay." act=${async () => (await request("DELETE", path), gone())}>Remove</${ConfirmButton}>
  </div>`;
}

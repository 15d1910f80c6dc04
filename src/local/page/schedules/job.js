/** One job: what it asks and when, and its runs with their answers. */

import { html, useState } from "../html.js";
import { modeWords } from "../core/modes.js";
import { MISSED, scheduleWords } from "../core/schedule_words.js";
import { figure, moment } from "../core/words.js";
import { Back, Facts, State, Words } from "../parts/detail.js";
import { Button } from "../parts/field.js";
import { useLive } from "../parts/live.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { addressOf, goToScreen } from "../state/screens.js";
import { now } from "../state/store.js";
import { JobActs } from "./acts.js";
import { Next } from "./next.js";

const STATES = { due: ["busy", "about to start"], asked: ["busy", "running"], answered: ["good", "answered"], failed: ["bad", "failed"], cancelled: ["off", "stopped"], refused: ["bad", "not run"], missed: ["off", "missed"] };
const MOST = 20;

/** @param {{id: string}} given */
export function JobDetail({ id }) {
  const { data, trouble, reload } = useResource("/cron");
  const [most, show] = useState(MOST);
  const runs = useResource(`/cron/${encodeURIComponent(id)}/runs?limit=${most}`);
  const [failure, fail] = useState(null);
  const again = () => (reload(), runs.reload());
  useLive("cron", again);
  const job = data?.jobs.find((one) => one.job_id === id);
  const isMissing = data && !job;
  return html`<${Back} href=${addressOf("schedules")}>All schedules</${Back}>
    <${ScreenHead} title=${job?.name ?? "Schedule"}>${job ? html`<a class="as-button edged" href=${addressOf("schedules", id, "change")}>Change</a>` : null}<${Button} act=${again}>Reload</${Button}></${ScreenHead}>
    ${failure ? html`<${Trouble} text="The job was not changed." failure=${failure} label="Close" act=${() => fail(null)} />` : null}
    ${trouble || isMissing ? html`<${Trouble} text=${isMissing ? "There is no such job. It may have been removed." : "The job could not be read."} failure=${trouble} act=${reload} />` : null}
    ${job ? html`<div><${Job} job=${job} />
      <${JobActs} kind="edged" job=${job} done=${again} fail=${fail} gone=${() => goToScreen("schedules")} />
      <h2>Runs</h2>
      ${runs.trouble ? html`<${Trouble} text="The runs could not be read." failure=${runs.trouble} act=${runs.reload} />` : null}
      ${runs.data ? html`<${Runs} job=${job} runs=${runs.data.runs} />` : runs.trouble ? null : html`<${Loading} />`}
      ${runs.data?.runs.length === most ? html`<${Button} act=${() => show(most + 100)}>Earlier runs</${Button}>` : null}</div>` : isMissing || trouble ? null : html`<${Loading} />`}`;
}

function Job({ job }) {
  return html`<${Facts} rows=${[
    ["Asks", html`<${Words}>${job.prompt}</${Words}>`],
    ["When", html`${scheduleWords(job.schedule)} <code>${job.schedule}</code> <small>${job.time_zone}</small>`],
    ["Next run", html`<${Next} job=${job} />`],
    ["Permissions", modeWords(job.mode)],
    ["Times that were missed", MISSED[job.missed]],
    ["Answers", job.session_id ? html`<a href=${`#/c/${encodeURIComponent(job.session_id)}`}>all in one conversation</a>` : "each in a conversation of its own"],
    ["At most a day", `${figure(job.max_runs_a_day)} runs${job.max_tokens_a_day ? `, ${figure(job.max_tokens_a_day)} tokens` : ""}`],
    ["Untrusted content", job.tainted ? "made in a conversation with untrusted content, so its runs are treated as such" : ""],
    ["Made", moment(job.created_at, now.value)],
  ]} />`;
}

function Runs({ job, runs }) {
  if (!runs.length) return html`<${Empty}>It has not run yet. “Run now” starts it at once.</${Empty}>`;
  return html`<ul class="things">${runs.map((run, index) => html`<${Run} key=${run.run_id} job=${job} run=${run} isLatest=${index === 0} />`)}</ul>`;
}

function Run({ job, run, isLatest }) {
  const [tone, word] = STATES[run.state] ?? ["off", run.state];
  const hasQuery = !["missed", "refused", "due"].includes(run.state);
  const session = job.session_id || run.query_id;
  return html`<li><div class="head"><span class="grow"><span class="num">${moment(run.scheduled_at, now.value)}</span>${run.by_hand ? html` <small>started by hand</small>` : null}</span><${State} state=${tone}>${word}</${State}>${run.tokens ? html`<span class="num">${figure(run.tokens)} tokens</span>` : null}</div>
    ${run.detail ? html`<p>${run.detail}</p>` : null}
    ${hasQuery ? html`<${Answer} run=${run} isOpen=${isLatest} />
      <p><a href=${`#/c/${encodeURIComponent(session)}/${encodeURIComponent(run.query_id)}`}>Open the conversation</a></p>` : null}</li>`;
}

/** Read when it is looked at; the latest one at once. */
function Answer({ run, isOpen }) {
  const [isShown, show] = useState(isOpen);
  const hasEnded = run.state === "answered";
  const { data, trouble, reload } = useResource(isShown && hasEnded ? `/query/${encodeURIComponent(run.query_id)}` : null);
  if (!hasEnded) return null;
  if (!isShown) return html`<p><button type="button" class="quiet edged" onClick=${() => show(true)}>Show the answer</button></p>`;
  if (trouble) return html`<${Trouble} text="The answer could not be read. Its conversation may have been deleted." failure=${trouble} act=${reload} />`;
  return data ? html`<${Words}>${data.answer || "The answer is empty."}</${Words}>` : html`<${Loading} />`;
}

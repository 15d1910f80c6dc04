/** When a job runs next, in words. */

import { html } from "../html.js";
import { untilWords } from "../core/schedule_words.js";
import { moment } from "../core/words.js";
import { State } from "../parts/detail.js";
import { now } from "../state/store.js";

export function Next({ job }) {
  if (!job.enabled) return html`<${State} state="off">paused</${State}>`;
  if (!job.next_at) return "does not run again";
  return html`${untilWords(job.next_at - now.value)} <small>${moment(job.next_at, now.value)}</small>`;
}

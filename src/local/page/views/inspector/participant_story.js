/** One participant: what it is, how it does, what it hears. */

import { html } from "../../html.js";
import { figure } from "../../core/words.js";
import { participants } from "../../state/store.js";
import { CopyButton } from "../copy_button.js";

export function ParticipantStory({ shown, isRaw }) {
  const row = participants.value.get(shown.name);
  if (!row) return html`<p class="empty">There is no participant of this name.</p>`;
  if (isRaw) return html`<p class="help"><${CopyButton} text=${JSON.stringify(row, null, 2)} what="status" /></p><pre tabindex="0" aria-label="Its status">${JSON.stringify(row, null, 2)}</pre>`;
  const details = Object.entries(row.details ?? {});
  const heard = Object.entries(row.subscriptions ?? {});
  const counters = Object.entries(row.counters ?? {}).filter(([, count]) => count > 0);
  return html`<dl class="known">
      <dt>state</dt><dd>${row.kind}, <b class=${row.state === "ready" ? "good" : "bad"}>${row.state}</b>${row.inflight ? `, ${figure(row.inflight)} in hand` : ""}</dd>
      ${row.pid ? html`<dt>process</dt><dd><code>${row.pid}</code>${row.restarts ? `, restarted ${figure(row.restarts)} ×` : ", never restarted"}</dd>` : null}
      ${row.detail ? html`<dt>last</dt><dd>${row.detail}</dd>` : null}
      ${details.map(([name, value]) => html`<dt>${name.replaceAll("_", " ")}</dt><dd>${value}</dd>`)}
    </dl>
    ${counters.length ? html`<h3>Counters since its start</h3><ul class="plain-rows">${counters.map(([name, count]) => html`<li key=${name}><span>${name.replaceAll("_", " ")}</span><span class="num">${figure(count)}</span></li>`)}</ul>` : null}
    ${heard.length ? html`<h3>Subscriptions <small>with their durable consumers</small></h3><ul class="subjects">${heard.map(([subject, consumer]) => html`<li key=${subject}><code>${subject}${consumer ? ` · ${consumer}` : ""}</code></li>`)}</ul>` : null}`;
}

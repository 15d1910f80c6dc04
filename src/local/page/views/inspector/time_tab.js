/** Where the time went: the shares, the attempts, the waterfall. */

import { html, useMemo, useState } from "../../html.js";
import { answerOf, shares, waterfall } from "../../core/waterfall.js";
import { duration } from "../../core/words.js";
import { inspect, moment, noteMoment, traceOf } from "../../state/inspection.js";
import { Button } from "../../parts/field.js";
import { me, now } from "../../state/store.js";
import { ownerRequest } from "../../state/system.js";
import { Replay } from "./replay.js";
import { SpanFacts } from "./span_facts.js";
import { TraceState } from "./trace_state.js";
import { Waterfall } from "./waterfall.js";

export function TimeTab({ shown, turn }) {
  const trace = traceOf(shown.queryId).value;
  const { value } = trace;
  const at = value && value.complete === false ? Math.max(now.value, Date.now() / 1000) : 0;
  const fall = useMemo(() => (value ? waterfall(value, at) : null), [value, at]);
  const [chosen, choose] = useState(null);
  const [after, put] = useState(moment.value?.queryId === shown.queryId ? moment.value.after : null);
  const move = (to, isWanted) => (put(to), isWanted && noteMoment(shown, to));
  if (!fall) return html`<${TraceState} trace=${trace} queryId=${shown.queryId} />`;
  const ofCall = shown.kind === "call" ? fall.rows.find((row) => row.span.detail?.call_id === shown.callId) : null;
  const row = fall.rows.find((one) => one.span.id === chosen) ?? ofCall ?? null;
  const callId = row?.span.detail?.call_id;
  const look = callId && shown.kind !== "call" ? () => inspect({ ...shown, kind: "call", callId }, "story") : null;
  return html`<${Facts} turn=${turn} trace=${value} fall=${fall} />
    <${Shares} trace=${value} />
    ${fall.fences.map((fence) => html`<p class="fence-note" key=${fence.attempt}><span aria-hidden="true">✂</span> <b>Attempt ${fence.attempt}</b> after ${duration(fence.at - fall.whole.from)}: ${fence.reason}</p>`)}
    ${fall.rows.length
      ? html`<${Waterfall} fall=${fall} chosen=${row?.span.id ?? null} choose=${choose} moment=${after === null ? null : fall.whole.from + after} />
        <${Replay} fall=${fall} envelopes=${value.envelopes ?? []} after=${after} move=${move} />`
      : html`<p class="empty">No times were recorded.</p>`}
    ${row ? html`<${SpanFacts} row=${row} from=${fall.whole.from} look=${look} />` : html`<p class="quiet-words">${inShort(value, fall)}</p>`}
    <${TraceState} trace=${trace} queryId=${shown.queryId} />
    ${me.value.owner && value.complete !== false ? html`<${Send} queryId=${shown.queryId} />` : null}`;
}

/** Sends the trace to the collector in otel.yaml. */
function Send({ queryId }) {
  const [told, tell] = useState("");
  const send = () =>
    ownerRequest("POST", `/query/${encodeURIComponent(queryId)}/trace/send`).then(({ spans, endpoint }) => tell(`${spans} spans were sent to ${endpoint}.`), (failure) => tell(failure.message));
  return html`<p class="row-acts"><${Button} act=${send} label="Send the trace to an OpenTelemetry collector">Send</${Button}> <small role="status">${told}</small></p>`;
}

function Facts({ turn, trace, fall }) {
  const ended = answerOf(trace)?.sent_at ?? null;
  const took = ended === null ? fall.whole.to - fall.whole.from : ended - fall.whole.from;
  const attempts = trace.attempts?.length > 1 ? ` · ${trace.attempts.length} attempts` : "";
  return html`<dl class="known">
    <dt>query</dt><dd><code>${trace.query_id ?? turn?.query_id}</code></dd>
    <dt>took</dt><dd>${duration(took)}${ended === null ? " so far" : ""} · ${turn?.status ?? ""}${attempts}</dd>
  </dl>`;
}

/** What each kind of work took, as one bar and in words. */
function Shares({ trace }) {
  const found = shares(trace.self_time);
  if (!found.length) return null;
  let at = 0;
  const bars = found.map(({ kind, share }) => {
    at += share;
    return html`<rect class=${`k-${kind}`} key=${kind} x=${`${100 * (at - share)}%`} width=${`${100 * share}%`} height="8" />`;
  });
  return html`<svg class="shares" width="100%" height="8" aria-hidden="true">${bars}</svg>
    <ul class="shares-words">${found.map(({ kind, name, seconds, share }) => html`<li key=${kind}><i class=${`swatch k-${kind}`} aria-hidden="true"></i>${name} <b>${percent(share)}</b> <span class="num">${duration(seconds)}</span></li>`)}</ul>`;
}

function percent(share) {
  return share > 0 && share < 0.01 ? "<1 %" : `${Math.round(100 * share)} %`;
}

/** What somebody who is in a hurry wants to know. */
function inShort(trace, fall) {
  const critical = fall.rows.filter((row) => row.isCritical);
  const longest = critical.reduce((most, row) => (!most || row.to - row.from > most.to - most.from ? row : most), null);
  const restarts = fall.fences.length ? "" : " The first attempt succeeded.";
  if (!longest) return restarts.trim();
  return `Most of the time was spent in ${longest.label}, ${duration(longest.to - longest.from)}.${restarts}`;
}

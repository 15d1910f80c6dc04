/** The messages on the bus that belong to it, headers first. */

import { html, useMemo, useState } from "../../html.js";
import { belonging, isTrouble, keyOf, matches } from "../../core/envelopes.js";
import { bytes, counted } from "../../core/words.js";
import { inspect, traceOf } from "../../state/inspection.js";
import { CopyButton } from "../copy_button.js";
import { RowWindow } from "../row_window.js";
import { TraceState } from "./trace_state.js";

export function RawTab({ shown, turn }) {
  const trace = traceOf(shown.queryId).value;
  const [text, type] = useState("");
  const [onlyTrouble, limit] = useState(false);
  const all = useMemo(() => belonging(trace.value, shown), [trace.value, shown.callId]);
  const rows = all.filter((one) => (!onlyTrouble || isTrouble(one)) && matches(one, text));
  const open = (envelope) => inspect({ kind: "envelope", sessionId: shown.sessionId, queryId: shown.queryId, envelope });
  return html`<${TraceState} trace=${trace} queryId=${shown.queryId} />
    ${all.length
      ? html`<div class="raw-head"><input type="search" placeholder="Filter" aria-label="Filter the messages" value=${text} onInput=${(event) => type(event.target.value)} />
          <label class="switch"><input type="checkbox" checked=${onlyTrouble} onChange=${(event) => limit(event.target.checked)} /> Only problems</label></div>
        <p class="help" role="status">${rows.length === all.length ? counted(all.length, "message") : `${rows.length} of ${counted(all.length, "message")}`} <${CopyButton} text=${JSON.stringify(rows, null, 2)} what="headers" label="Copy headers" /></p>
        <${RowWindow} rows=${rows} className="envelopes" label="Messages" draw=${(one) => html`<${Row} key=${keyOf(one)} envelope=${one} from=${all[0].sent_at} open=${open} />`} />`
      : null}
    ${turn ? html`<p class="help">The stored answer <${CopyButton} text=${JSON.stringify(turn, null, 2)} what="record" label="Copy as JSON" /></p>` : null}`;
}

function Row({ envelope, from, open }) {
  const { subject, sender = "", size, count, sent_at: at, recorded } = envelope;
  const after = `+${Math.max(0, at - from).toFixed(3)}`;
  const trouble = isTrouble(envelope);
  return html`<li class=${trouble ? "bad" : recorded === false ? "passing" : null}>
    <button type="button" onClick=${() => open(envelope)} aria-label=${`${subject}${sender ? ` from ${sender}` : ""}, ${after} seconds${trouble ? ", trouble" : ""}`}>
      <span class="num">${after}</span><code title=${subject}>${trouble ? "△ " : ""}${subject}</code><span class="sender">${sender}</span><em class="num">${size != null ? bytes(size) : count > 1 ? `× ${count}` : ""}</em>
    </button></li>`;
}

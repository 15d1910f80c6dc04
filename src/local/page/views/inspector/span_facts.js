/** What is known of one span of a waterfall. */

import { html } from "../../html.js";
import { KINDS } from "../../core/waterfall.js";
import { duration, figure } from "../../core/words.js";

export function SpanFacts({ row, from, look }) {
  const { span } = row;
  const detail = Object.entries(span.detail ?? {}).filter(([name, value]) => value !== null && value !== "" && name !== "first_token");
  return html`<section class="span-facts" aria-label=${`About ${row.label}`}>
    <h3>${row.label} <small>${KINDS[span.kind] ?? span.kind}</small></h3>
    <dl class="known">
      <dt>began</dt><dd>after ${duration(row.from - from) || "0"}</dd>
      <dt>took</dt><dd>${row.isOpen ? "still running" : duration(row.to - row.from)}${row.isCritical ? ", on the critical path" : ""}</dd>
      ${row.firstWord ? html`<dt>first</dt><dd>word after ${duration(row.firstWord - row.from)}</dd>` : null}
      ${span.attempt > 1 ? html`<dt>attempt</dt><dd>${span.attempt}</dd>` : null}
      ${detail.map(([name, value]) => html`<dt>${name.replaceAll("_", " ")}</dt><dd><code>${inWords(value)}</code></dd>`)}
    </dl>
    ${look ? html`<button type="button" class="quiet" onClick=${look}>Inspect this call</button>` : null}
  </section>`;
}

function inWords(value) {
  if (typeof value === "number") return Number.isInteger(value) ? figure(value) : String(Number(value.toPrecision(6)));
  return typeof value === "string" ? value : JSON.stringify(value);
}

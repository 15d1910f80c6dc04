/** One remembered exchange: what was said, what is known of it, what was noted since. */

import { html, useEffect, useState } from "../../html.js";
import { ago, moment } from "../../core/words.js";
import { request } from "../../net/api.js";
import { go } from "../../state/actions.js";
import { dialog, now } from "../../state/store.js";
import { CopyButton } from "../copy_button.js";
import { Fact } from "../fact.js";

export function EngramStory({ shown, isRaw }) {
  const [found, put] = useState(null);
  const [trouble, fail] = useState("");
  useEffect(() => {
    let isHere = true;
    request("GET", `/memory/${encodeURIComponent(shown.engramId)}`).then(
      (value) => isHere && put(value),
      (failure) => isHere && fail(failure.kind === "not_found" ? "This memory was deleted." : failure.message)
    );
    return () => (isHere = false);
  }, [shown.engramId]);
  if (trouble) return html`<p class="trouble" role="alert">${trouble}</p>`;
  if (!found) return html`<div aria-busy="true"><span class="skeleton line"></span></div>`;
  if (isRaw) return html`<p class="help"><${CopyButton} text=${JSON.stringify(found, null, 2)} what="memory" /></p><pre tabindex="0" dir="auto" aria-label="The memory">${JSON.stringify(found, null, 2)}</pre>`;
  const settle = (fact, method) =>
    request(method, `/memory/facts/${fact.fact_id}${method === "POST" ? "/confirm" : ""}`)
      .then(() => request("GET", `/memory/${encodeURIComponent(shown.engramId)}`))
      .then(put, (failure) => fail(failure.message));
  return html`<${Told} found=${found} settle=${settle} />`;
}

function Told({ found, settle }) {
  const { engram, facts = [], changes = [] } = found;
  const known = [ago(now.value - engram.asked_at), engram.score ? `graded ${engram.score}` : "", engram.sentiment ? `rated ${engram.sentiment > 0 ? "good" : "bad"}` : "", engram.pinned ? "pinned" : "", engram.origin ? `from ${engram.origin}` : ""];
  return html`<blockquote class="said" dir="auto">${engram.query}</blockquote>
    ${engram.answer ? html`<p class="more-words" dir="auto">${engram.answer}</p>` : null}
    <p><small>${known.filter(Boolean).join(" · ")}</small></p>
    ${facts.length ? html`<h3>What it says of you</h3><ul class="plain-rows">${facts.map((fact) => html`<${Fact} key=${fact.fact_id} fact=${fact} settle=${settle} />`)}</ul>` : null}
    ${changes.length ? html`<h3>Noted since</h3><ul class="plain-rows">${changes.map((change, index) => html`<li key=${index}><span>${change.what}: ${String(change.value ?? "none")}</span><span class="num">${change.at ? moment(change.at, now.value) : ""}</span></li>`)}</ul>` : null}
    <div class="acts-row"><button type="button" onClick=${() => go(engram.session_id, engram.query_id)}>Go to the conversation</button>
      <button type="button" class="bad" onClick=${() => (dialog.value = { kind: "forget", engramId: engram.engram_id, text: engram.query })}>Forget</button></div>`;
}

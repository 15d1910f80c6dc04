/** All of one exchange: what was said, the facts from it, what was noted since, what rests on it; pin, correct, delete. */

import { html, useEffect, useState } from "../html.js";
import { changeOf, lineOf, originOf } from "../core/memory.js";
import { moment } from "../core/words.js";
import { request } from "../net/api.js";
import { Button } from "../parts/field.js";
import { Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { addressOf, goToScreen } from "../state/screens.js";
import { dialog, now, spoken } from "../state/store.js";
import { FactRows } from "./fact_rows.js";
import { exchangeAt, keepFocus, turnAt, useRemembered } from "./live.js";

/** One exchange on an address of its own. */
export function OneExchange({ id }) {
  useEffect(() => {
    keepFocus();
    return keepFocus;
  }, []);
  return html`<p><a href=${addressOf("memory")}>‹ All exchanges</a></p>
    <${Exchange} id=${id} change=${() => {}} gone=${() => goToScreen("memory")} />`;
}

/** @param {{id: string, change: (now: any) => void, gone: () => void}} given `change` and `gone` are called when it was
 * changed, and deleted */
export function Exchange({ id, change, gone }) {
  const path = `/memory/${encodeURIComponent(id)}`;
  const { data, trouble, reload } = useResource(path);
  const rests = useResource(`${path}/repeated`);
  const [failure, fail] = useState(null);
  useRemembered(() => (reload(), rests.reload()));
  if (trouble && !data) return trouble.kind === "not_found" ? html`<p class="empty">This exchange was deleted.</p>` : html`<${Trouble} text="The exchange could not be read." failure=${trouble} act=${reload} />`;
  if (!data) return html`<${Loading} />`;
  const { engram, facts, changes } = data;
  const pin = () =>
    request(engram.pinned ? "DELETE" : "POST", `${path}/pin`).then(({ pinned }) => (fail(null), (spoken.value = pinned ? "Pinned" : "Unpinned"), change({ pinned }), reload()), fail);
  const forget = () => (dialog.value = { kind: "forget", engramId: id, text: lineOf(engram), done: gone });
  const about = [moment(engram.asked_at, now.value), `from: ${originOf(engram)}`, engram.tainted ? "with untrusted content" : "", engram.intent ?? "", ...engram.entities];
  return html`<div class="exchange">
    ${engram.note_of ? html`<h2>Note</h2>` : html`<h2>Question</h2><blockquote class="said" dir="auto">${engram.query}</blockquote><h2>Answer</h2>`}
    <p class="whole" dir="auto">${engram.answer || "There is no answer."}</p>
    ${engram.cut ? html`<p><small>This is cut. The export and the conversation have all of it.</small></p>` : null}
    <p dir="auto"><small>${about.filter(Boolean).join(" · ")}</small></p>
    ${facts.length ? html`<h2>Facts from here</h2><${FactRows} facts=${facts} reload=${reload} isOfOne />` : null}
    ${changes.length ? html`<h2>Noted since</h2><ul class="plain-rows">${changes.map((one, index) => html`<li key=${index}><span dir="auto">${changeOf(one)}</span><span class="num">${moment(one.at, now.value)}</span></li>`)}</ul>` : null}
    <${Others} title="It rests on" ids=${engram.recalled} />
    <${Others} title="Answers that rest on it" ids=${rests.data?.repeated_in ?? []} />
    ${failure ? html`<${Trouble} text=${engram.pinned ? "It is still pinned." : "It was not pinned."} failure=${failure} label="Close" act=${() => fail(null)} />` : null}
    <div class="row-acts"><${Button} act=${pin}>${engram.pinned ? "Unpin" : "Pin"}</${Button}>
      ${engram.session_id ? html`<a class="as-button edged" href=${turnAt(engram.session_id, engram.note_of ?? engram.query_id)}>Go to the conversation</a>` : null}
      <button type="button" class="edged bad" aria-haspopup="dialog" onClick=${forget}>Delete…</button></div>
    <p><small>${engram.pinned ? "Pinned: the model is told this in every conversation." : "Pin it to have the model told in every conversation what you said here."}</small></p>
  </div>`;
}

/** Other exchanges, each a way to it. */
function Others({ title, ids }) {
  if (!ids.length) return null;
  return html`<h2>${title}</h2><ul class="plain-rows">${ids.map((id) => html`<li key=${id}><${Other} id=${id} /></li>`)}</ul>`;
}

function Other({ id }) {
  const { data, trouble } = useResource(`/memory/${encodeURIComponent(id)}`);
  if (trouble) return html`<span class="empty">${trouble.kind === "not_found" ? "deleted" : trouble.message}</span>`;
  return html`<span dir="auto">${data ? html`<a href=${exchangeAt(id)}>${lineOf(data.engram)}</a>` : "…"}</span>`;
}

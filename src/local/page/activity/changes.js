/** Which files tools have changed, and the way back: of a call, of a question, of a day. */

import { html, useState } from "../html.js";
import { byQuery } from "../core/changes.js";
import { dayAt } from "../core/system_tables.js";
import { counted, moment } from "../core/words.js";
import { request } from "../net/api.js";
import { ConfirmButton } from "../parts/confirm.js";
import "../parts/detail.js"; // for its style
import { Example } from "../parts/example.js";
import { Button, Field } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useLive } from "../parts/live.js";
import { useResource } from "../parts/resource.js";
import { now, sessions } from "../state/store.js";
import { lines } from "../views/changes.js";

const STEP = 100;

export function FileChanges() {
  const [most, show] = useState(STEP);
  const { data, trouble, reload } = useResource(`/changes?limit=${most}`);
  const [said, say] = useState("");
  useLive("files", reload);
  const undo = async (what) => {
    const { undone } = await request("POST", "/changes/undo", what);
    say(undone.length ? `${counted(undone.length, "change")} undone: ${[...new Set(undone.map((one) => one.path))].join(", ")}` : "Nothing was left to undo.");
    reload();
  };
  const queries = byQuery(data?.changes ?? []);
  return html`<p class="help">What tools have made, changed or deleted in the workspace${data ? html` <code>${data.workspace}</code>` : null}. Undo brings the files back as they were; it is refused where a file was changed again since.</p>
    <p role="status">${said}</p>
    ${trouble ? html`<${Trouble} text="The changes could not be read." failure=${trouble} act=${reload} />` : null}
    ${queries.length ? html`<${OfADay} undo=${undo} /><ul class="things">${queries.map((one) => html`<${OfQuery} key=${one.queryId} query=${one} undo=${undo} />`)}</ul>` : data ? html`<${Empty}>No file was changed yet: tools change files after you have allowed it.<${Example} ask="Write a packing list for Oslo to packing.md" /></${Empty}>` : trouble ? null : html`<${Loading} />`}
    ${data && data.changes.length >= most && most < 1000 ? html`<p class="more-messages"><${Button} act=${() => show(Math.min(1000, most + STEP))}>Earlier</${Button}></p>` : null}`;
}

function OfADay({ undo }) {
  const [day, choose] = useState(dayAt(now.peek()));
  return html`<div class="filters"><${Field} label="All of one day">${(given) => html`<input type="date" ...${given} max=${dayAt(now.value)} value=${day} onInput=${(event) => choose(event.target.value)} />`}</${Field}>
    ${day ? html`<${ConfirmButton} title=${`Undo all changes of ${day}?`} verb="Undo them" text="Every file that a tool changed on that day becomes as it was before; none if one of them was changed again since." act=${() => undo({ day })}>Undo this day</${ConfirmButton}>` : null}</div>`;
}

function OfQuery({ query: { queryId, sessionId, at, calls, isUndone }, undo }) {
  const title = sessions.value.get(sessionId)?.title || "A question";
  return html`<li><div class="head"><a class="grow" dir="auto" href=${`#/c/${encodeURIComponent(sessionId)}/${encodeURIComponent(queryId)}`}>${title}</a><span class="num">${moment(at, now.value)}</span>
      ${isUndone || calls.length < 2 ? null : html`<${ConfirmButton} kind="quiet edged" title="Undo all changes of this question?" verb="Undo them" text=${`${counted(calls.length, "call")} changed files for it. All of them become as they were before.`} act=${() => undo({ query_id: queryId })}>Undo this question</${ConfirmButton}>`}</div>
    ${calls.map((call) => html`<${OfCall} key=${call.callId} call=${call} undo=${undo} />`)}</li>`;
}

function OfCall({ call: { callId, tool, changes, isUndone }, undo }) {
  const [failure, fail] = useState(null);
  const back = () => undo({ call_id: callId }).then(() => fail(null), fail);
  const paths = changes.map((one) => one.path).join(", ");
  return html`<div class="change"><div class="row-acts"><code>${tool}</code> ${changes.map((one) => html`<span key=${one.path}>${one.what} <b dir="auto">${one.path}</b></span>`)}
      ${isUndone ? html`<span class="tag">undone</span>` : html`<${Button} kind="quiet edged" label=${`Undo the changes of ${paths}`} act=${back}>Undo</${Button}>`}</div>
    ${failure ? html`<p class="trouble" role="alert">Not undone: ${failure.message}</p>` : null}
    <${Diffs} callId=${callId} /></div>`;
}

/** Read when it is looked at. */
function Diffs({ callId }) {
  const [isOpen, open] = useState(false);
  const { data, trouble } = useResource(isOpen ? `/changes?call_id=${encodeURIComponent(callId)}` : null);
  return html`<details onToggle=${(event) => open(event.currentTarget.open)}><summary>What changed</summary>
    ${trouble ? html`<p class="trouble" role="alert">${trouble.message}</p>` : data ? data.changes.map((one) => html`<pre key=${one.path} class="diff" tabindex="0" dir="ltr" aria-label=${`${one.path}, ${one.what}`}>${one.diff ? lines(one.diff) : "It is not text."}</pre>`) : isOpen ? html`<${Loading} />` : null}</details>`;
}

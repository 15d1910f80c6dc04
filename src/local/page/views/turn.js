/** One turn: the question, what was thought and done for it, the answer. */

import { html, useMemo } from "../html.js";
import { isAsked } from "../core/approvals.js";
import { sourcesOf } from "../core/sources.js";
import { isUntouched, waitedFor } from "../core/turn.js";
import { bytes, figure } from "../core/words.js";
import { Prose } from "../markdown/prose.js";
import { outbox } from "../state/outbox.js";
import { edit, stop } from "../state/actions.js";
import { approvals } from "../state/approvals.js";
import { inspectTurn } from "../state/inspection.js";
import { useFold } from "../state/folds.js";
import { offlineSince } from "../state/store.js";
import { AnswerLine } from "./answer_line.js";
import { ContextCard } from "./context_card.js";
import { Fault } from "./fault.js";
import { Sources } from "./sources.js";
import { Thinking } from "./thinking.js";
import { Thumbnail } from "./thumbnail.js";
import { TodoCard } from "./todo_card.js";
import { ToolCalls } from "./tool_calls.js";
import { Versions } from "./versions.js";

const LONG_CHARACTERS = 1200;
const LONG_LINES = 14;

/** `turn` is a signal. */
export function Turn({ turn: known, conversation }) {
  const turn = known.value;
  const unsent = outbox.value.get(turn.query_id);
  const isQueued = isUntouched(turn) && conversation.open[0] !== turn.query_id;
  return html`<article class="turn" tabindex="-1" data-query=${turn.query_id} data-state=${turn.status} data-phase=${turn.phase} aria-label=${`Question: ${shortened(turn.query)}`}>
    <${Question} turn=${turn} conversation=${conversation} isQueued=${isQueued} unsent=${unsent} />
    ${isQueued || unsent?.trouble ? null : html`<${Reply} turn=${turn} conversation=${conversation} />`}
  </article>`;
}

function Question({ turn, conversation, isQueued, unsent }) {
  return html`<div class=${isQueued ? "question queued" : "question"}>
    <h2 class="unseen">You asked</h2>
    <${Asked} text=${turn.query} queryId=${turn.query_id} />
    ${turn.attachments.length ? html`<ul class="files">${turn.attachments.map((file) => html`<${AskedFile} key=${file.id} file=${file} />`)}</ul>` : null}
    <${Versions} turn=${turn} conversation=${conversation} />
    ${unsent?.trouble ? html`<${Unsent} turn=${turn} trouble=${unsent.trouble} />` : null}
    ${isQueued && !unsent?.trouble
      ? html`<div class="waits"><small>waits for the answer above</small><button type="button" onClick=${() => void edit(turn)}>Edit</button><button type="button" onClick=${() => void stop(turn.query_id)}>Remove</button></div>`
      : null}
  </div>`;
}

/** What was asked; a long text is folded. */
function Asked({ text, queryId }) {
  const [isOpen, open] = useFold(`asked ${queryId}`);
  const isLong = text.length > LONG_CHARACTERS || text.split("\n", LONG_LINES + 1).length > LONG_LINES;
  return html`<div class="asked" data-folded=${isLong && !isOpen}><p dir="auto">${text}</p>${isLong ? html`<button type="button" class="quiet unfold" aria-expanded=${isOpen} onClick=${() => open(!isOpen)}>${isOpen ? "Fold the question" : `Show the whole question (${figure(text.length)} characters)`}</button>` : null}</div>`;
}

function AskedFile({ file }) {
  const words = `${file.name ?? "A file that was deleted"}${file.size ? ` · ${bytes(file.size)}` : ""}`;
  return html`<li class="file">${file.name && (file.media_type ?? "").startsWith("image/") ? html`<${Thumbnail} id=${file.id} name=${file.name} />` : null}<span>${words}</span></li>`;
}

function Unsent({ turn, trouble }) {
  const isToldAbove = trouble.kind === "offline" && offlineSince.value !== null;
  return html`<div class="waits bad" role="status" data-state="unsent"><small>${isToldAbove ? "Waiting for the connection." : `${trouble.passes ? "Not sent yet; it is sent as soon as possible." : "Not accepted."} ${trouble.message}`}</small>
    <button type="button" onClick=${() => void edit(turn)}>Edit</button><button type="button" onClick=${() => void stop(turn.query_id)}>Remove</button></div>`;
}

function Reply({ turn, conversation }) {
  const isOpen = turn.status === "open";
  const addresses = turn.tool_calls.flatMap((call) => call.sources ?? []).join("\n");
  const sources = useMemo(() => sourcesOf(turn), [addresses]);
  return html`<div class="reply">
    <h2 class="unseen">${isOpen ? "LoCAL2 is answering" : "LoCAL2 answered"}</h2>
    <${ContextCard} context=${turn.context} queryId=${turn.query_id} />
    ${turn.thinking || turn.phase === "thinking" ? html`<${Thinking} turn=${turn} />` : null}
    <${ToolCalls} turn=${turn} sources=${sources} />
    <${TodoCard} turn=${turn} />
    ${turn.answer ? html`<div class="answer" data-answer><${Prose} text=${turn.answer} live=${isOpen} sources=${sources} cite=${() => inspectTurn(turn.query_id, "sources")} /></div>` : null}
    ${isOpen && (turn.reading || (!turn.answer && turn.phase !== "thinking")) ? html`<${Waiting} turn=${turn} />` : null}
    <${Fault} turn=${turn} conversation=${conversation} />
    <${Sources} sources=${sources} turn=${turn} />
    <${AnswerLine} turn=${turn} conversation=${conversation} />
  </div>`;
}

function Waiting({ turn }) {
  return html`<p class="pending"><span class="dots" aria-hidden="true"><u></u><u></u><u></u></span> ${waitWord(turn)}</p>`;
}

function waitWord(turn) {
  return isAsked(approvals.value, turn.query_id) ? "waiting for you" : waitedFor(turn);
}

function shortened(text) {
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

/** What the model got: how full its window was and of what, and the messages themselves. */

import { html, useEffect, useState } from "../../html.js";
import { partsOf, stepsOf, textOf, upTo } from "../../core/context.js";
import { counted, figure } from "../../core/words.js";
import { request } from "../../net/api.js";
import { conversationOf } from "../../state/conversation.js";
import { traceOf } from "../../state/inspection.js";
import { CopyButton } from "../copy_button.js";

export function ContextTab({ shown, turn }) {
  const gauge = turn?.usage?.context ?? conversationOf(shown.sessionId).context.value;
  const [{ messages, trouble }, again] = useMessages(shown.sessionId, turn?.status);
  const compacted = (traceOf(shown.queryId).value.value?.envelopes ?? []).filter((one) => one.subject === "context.compacted");
  return html`${gauge ? html`<${Gauge} gauge=${gauge} />` : html`<p class="empty">The model has not been asked yet.</p>`}
    ${compacted.map((one) => html`<p class="fence-note" key=${one.id}><b>Shortened</b> to fit the window. ${one.summary ?? ""}</p>`)}
    ${trouble ? html`<p class="trouble" role="alert">The messages could not be read: ${trouble} <button type="button" onClick=${again}>Try again</button></p>` : null}
    ${messages && turn ? html`<${Messages} messages=${messages} turn=${turn} />` : null}
    ${!messages && !trouble ? html`<div aria-busy="true"><span class="skeleton line"></span></div>` : null}`;
}

/** The messages of a conversation, read again when the turn has ended. */
function useMessages(sessionId, status) {
  const [state, put] = useState({ messages: null, trouble: "" });
  const [round, next] = useState(0);
  useEffect(() => {
    let isHere = true;
    request("GET", `/sessions/${encodeURIComponent(sessionId)}`).then(
      (session) => isHere && put({ messages: session.messages ?? [], trouble: "" }),
      (failure) => isHere && put({ messages: null, trouble: failure.message })
    );
    return () => (isHere = false);
  }, [sessionId, status, round]);
  return [state, () => next(round + 1)];
}

function Gauge({ gauge }) {
  const parts = partsOf(gauge);
  let at = 0;
  return html`<p class="gauge-words"><b>${figure(gauge.used)}</b> of ${figure(gauge.limit)} tokens, ${Math.round((100 * gauge.used) / gauge.limit)} %, at the last prompt</p>
    <svg class="shares" width="100%" height="10" aria-hidden="true">${parts.map(({ part, share }) => {
      at += share;
      return html`<rect class=${`p-${part}`} key=${part} x=${`${100 * (at - share)}%`} width=${`${100 * share}%`} height="10" />`;
    })}</svg>
    <ul class="gauge-parts">${parts.map(({ part, title, tokens }) => html`<li key=${part}><i class=${`swatch p-${part}`} aria-hidden="true"></i>${title}<span class="num">${figure(tokens)}</span></li>`)}
      <li><i class="swatch" aria-hidden="true"></i>Free<span class="num">${figure(Math.max(0, gauge.limit - gauge.used - (gauge.parts?.reserve ?? 0)))}</span></li></ul>`;
}

function Messages({ messages, turn }) {
  const { given, later, isFound } = upTo(messages, turn);
  const steps = isFound ? stepsOf(turn) : [];
  const [isLaterShown, showLater] = useState(false);
  return html`<h3>Messages <small>${counted(given.length + steps.length, "message")}, no thinking</small> <${CopyButton} text=${JSON.stringify([...given, ...steps], null, 2)} what="messages" /></h3>
    ${isFound ? null : html`<p class="help">This question is no longer in the model's context. These are the messages that would precede the next question.</p>`}
    <ol class="messages">${[...given, ...steps].map((one, index) => html`<${Message} key=${index} message=${one} number=${index + 1} isOpen=${index === given.length - 1 && isFound} />`)}</ol>
    ${later.length ? html`<button type="button" class="quiet" aria-expanded=${isLaterShown} onClick=${() => showLater(!isLaterShown)}>${isLaterShown ? "Hide" : "Show"} later messages, ${counted(later.length, "message")}</button>` : null}
    ${isLaterShown ? html`<ol class="messages later" start=${given.length + 1}>${later.map((one, index) => html`<${Message} key=${index} message=${one} number=${given.length + index + 1} />`)}</ol>` : null}`;
}

const ROLES = { system: "system", user: "user", assistant: "model", tool: "tool" };

function Message({ message, number, isOpen }) {
  const text = textOf(message);
  return html`<li><details open=${isOpen}>
    <summary><span class="caret" aria-hidden="true"></span><span class="num">${number}</span><b data-role=${message.role}>${message.name ?? ROLES[message.role] ?? message.role}</b><span class="first-words" dir="auto">${text.slice(0, 120)}</span><span class="num">${figure(text.length)}</span></summary>
    <pre tabindex="0" dir="auto" aria-label=${`Message ${number}`}>${text}</pre>
  </details></li>`;
}

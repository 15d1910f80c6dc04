/** The conversation that is shown: its bar, its turns, the composer. */

import { html } from "../html.js";
import { conversationOf, load } from "../state/conversation.js";
import { begin } from "../state/commands.js";
import { current, currentId, isIncognito, isRailOpen, sessions } from "../state/store.js";
import { isSecret } from "../state/actions.js";
import { ApprovalCards } from "./approval_cards.js";
import { Composer } from "./composer.js";
import { ContextGauge } from "./context_gauge.js";
import { ModelPicker } from "./model_picker.js";
import { Transcript } from "./transcript.js";
import { Welcome } from "./welcome.js";

export function Talk() {
  const id = currentId.value;
  const conversation = id ? conversationOf(id) : null;
  return html`
    <${TalkBar} conversation=${conversation} />
    ${conversation ? html`<${Shown} key=${id} conversation=${conversation} />` : html`<${Welcome} />`}
    ${id ? html`<${ApprovalCards} key=${`asks ${id}`} sessionId=${id} />` : null}
    <${Composer} key=${`composer ${id}`} sessionId=${id} />
  `;
}

function TalkBar({ conversation }) {
  const session = current.value;
  const secret = isIncognito.value && !conversation ? true : isSecret(conversation?.id ?? null);
  const title = session?.title || (conversation ? "Conversation" : "New conversation");
  document.title = session?.title ? `${session.title} · LoCAL2` : "LoCAL2";
  return html`<header class="bar">
    <button type="button" class="rail-open" aria-label="Conversations" aria-expanded=${isRailOpen.value} onClick=${() => (isRailOpen.value = true)}><i></i></button>
    <h1 dir="auto">${title}</h1>
    ${secret ? html`<span class="tag" title="It is not remembered, and deleted half an hour after the last question">incognito</span>` : null}
    <${ModelPicker} key=${`model ${conversation?.id ?? ""}`} sessionId=${conversation?.id ?? null} />
    ${conversation ? html`<${ContextGauge} conversation=${conversation} />` : null}
    <button type="button" class="rail-open" aria-label="New conversation" onClick=${() => begin(false)}>New</button>
  </header>`;
}

function Shown({ conversation }) {
  const state = conversation.state.value;
  if (state === "failed") return html`<${Trouble} conversation=${conversation} />`;
  if (state !== "ready" && !conversation.order.value.length) return html`<div class="scroll" data-state="loading" aria-busy="true"><div class="turn skeleton"></div></div>`;
  return html`<${Transcript} conversation=${conversation} />`;
}

function Trouble({ conversation }) {
  const failure = conversation.trouble.value;
  const isGone = failure?.kind === "not_found" || failure?.kind === "deleted";
  return html`<div class="scroll" data-state="failed"><section class="fault" role="alert">
    <b>${isGone ? "This conversation does not exist" : "This conversation could not be read"}</b>
    <p>${isGone ? "It was deleted, or the address is wrong." : failure?.message}</p>
    ${isGone ? null : html`<button type="button" onClick=${() => void load(conversation)}>Try again</button>`}
  </section></div>`;
}

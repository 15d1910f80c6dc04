/** The conversation that is shown: its bar, its turns, the composer. */

import { html } from "../html.js";
import { conversationOf, load } from "../state/conversation.js";
import { begin } from "../state/commands.js";
import { settingsOf } from "../state/choices.js";
import { current, currentId, dialog, isIncognito, isRailOpen } from "../state/store.js";
import { settingsLine } from "../core/models.js";
import { Icon } from "../icons.js";
import { isSecret } from "../state/actions.js";
import { approvals } from "../state/approvals.js";
import { Composer } from "./composer.js";
import { ContextGauge } from "./context_gauge.js";
import { lazy } from "./lazy.js";
import { ModelPicker } from "./model_picker.js";
import { Transcript } from "./transcript.js";
import { Welcome } from "./welcome.js";

const ApprovalCards = lazy(() => import("./approval_cards.js").then((file) => file.ApprovalCards), () => approvals.value.size > 0);

export function Talk() {
  const id = currentId.value;
  const conversation = id ? conversationOf(id) : null;
  return html`
    <${TalkBar} conversation=${conversation} />
    ${conversation ? html`<${Shown} key=${id} conversation=${conversation} />` : html`<${Welcome} />`}
    ${id && approvals.value.size ? html`<${ApprovalCards} key=${`asks ${id}`} sessionId=${id} />` : null}
    <${Composer} key=${`composer ${id}`} sessionId=${id} />
  `;
}

function TalkBar({ conversation }) {
  const session = current.value;
  const secret = isIncognito.value && !conversation ? true : isSecret(conversation?.id ?? null);
  const about = session ?? conversation?.about.value;
  const title = about?.title || (conversation ? "Conversation" : "New conversation");
  const chosen = settingsLine(settingsOf(conversation?.id ?? null));
  const origin = about?.branched_from && about.conversation === conversation?.id ? about.branched_from : null;
  document.title = about?.title ? `${about.title} · LoCAL2` : "LoCAL2";
  return html`<header class="bar">
    <button type="button" class="rail-open" aria-label="Conversations" aria-expanded=${isRailOpen.value} onClick=${() => (isRailOpen.value = true)}><i></i></button>
    <h1 dir="auto">${title}</h1>
    ${origin ? html`<a class="tag" href=${`#/c/${encodeURIComponent(origin.session_id)}/${encodeURIComponent(origin.query_id)}`} title="This conversation branched off another one: go there">branch</a>` : null}
    ${about?.imported_from ? html`<span class="tag" title=${`This conversation was imported from a file of ${about.imported_from}`}>from ${about.imported_from}</span>` : null}
    ${secret ? html`<span class="tag" title="It is not remembered, and deleted half an hour after the last question">incognito</span>` : null}
    <${ModelPicker} key=${`model ${conversation?.id ?? ""}`} sessionId=${conversation?.id ?? null} />
    <button type="button" class="quiet act answering" data-chosen=${chosen !== ""} aria-label=${chosen ? `How it is answered: ${chosen}. Change` : "How it is answered: profile, instructions, parameters"} title=${chosen ? `Answered with ${chosen}` : "Profile, instructions and parameters of this conversation"}
      onClick=${() => (dialog.value = { kind: "answering", sessionId: conversation?.id ?? null })}><${Icon} name="settings" /></button>
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
    <button type="button" onClick=${() => (isGone ? begin(false) : void load(conversation))}>${isGone ? "New conversation" : "Try again"}</button>
  </section></div>`;
}

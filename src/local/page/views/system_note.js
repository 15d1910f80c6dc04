/** What is not well with the system: which participant, what it does about it, where to look. */

import { html } from "../html.js";
import { troubles } from "../core/system_words.js";
import { inspect } from "../state/inspection.js";
import { isSaid } from "../core/faults.js";
import { conversationOf } from "../state/conversation.js";
import { currentId, health, offlineSince, participants } from "../state/store.js";

const MOST = 3;

/** What the conversation that is shown says of its last question: it is not said once more above it. */
function faultsShown() {
  const conversation = currentId.value ? conversationOf(currentId.value) : null;
  const turn = conversation?.turns.get(conversation.order.value.at(-1))?.value;
  return turn?.status === "failed" && turn.error?.message ? [turn.error.message] : [];
}

export function SystemNote() {
  if (offlineSince.value !== null) return null;
  const shown = faultsShown();
  const found = troubles(participants.value.values()).filter((one) => !isSaid(one.text, shown));
  const { problem, notice } = health.value ?? {};
  const isTold = found.some((one) => problem?.startsWith(one.name)) || isSaid(problem ?? "", shown);
  return html`${problem && !isTold ? html`<p class="bar-note warn" role="status" data-state="problem"><span><b>Not all is well:</b> ${problem}</span></p>` : null}
    ${found.length ? html`<p class="bar-note warn" role="status" data-state="trouble"><span><b>Not all is well:</b> ${found.slice(0, MOST).map((one) => one.text).join("; ")}${found.length > MOST ? ` and ${found.length - MOST} more` : ""}.</span>
      <button type="button" onClick=${() => inspect({ kind: "participant", name: found[0].name }, "story")}>Look</button></p>` : null}
    ${notice ? html`<p class="bar-note" role="status" data-state="notice"><span>${notice}</span></p>` : null}`;
}

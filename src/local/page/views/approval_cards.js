/** What asks for a person in this conversation, above the composer; the oldest first, one at a time. */

import { html, useEffect, useState } from "../html.js";
import { isFolder, isPlan, isQuestion, waitingIn } from "../core/approvals.js";
import { approvals } from "../state/approvals.js";
import { spoken } from "../state/store.js";
import { ApprovalCard } from "./approval_card.js";
import { PlanAsk } from "./plan_ask.js";
import { QuestionCard } from "./question_card.js";

export function ApprovalCards({ sessionId }) {
  const now = useSeconds();
  const waiting = waitingIn(approvals.value, sessionId, now);
  const first = waiting[0];
  useEffect(() => {
    if (first) spoken.value = announcement(first);
  }, [first?.call_id]);
  if (!first) return null;
  const Card = isQuestion(first) ? QuestionCard : isPlan(first) ? PlanAsk : ApprovalCard;
  return html`<div class="asks" data-state="waiting">
    <${Card} key=${first.call_id} approval=${first} now=${now} />
    ${waiting.length > 1 ? html`<p class="help">${waiting.length - 1} more behind it</p>` : null}
  </div>`;
}

function announcement(approval) {
  if (isQuestion(approval)) return "the model has a question for you";
  if (isPlan(approval)) return "a plan waits for your approval";
  return isFolder(approval) ? "a folder waits for your trust" : `${approval.tool} needs approval`;
}

/** Seconds since 1970, once a second. */
function useSeconds() {
  const [now, tick] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => tick(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, []);
  return now;
}

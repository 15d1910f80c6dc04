/** What waits for a decision, in any conversation, and what was allowed for whole conversations. */

import { html, useEffect, useState } from "../html.js";
import { effectOf, isPlan, isQuestion } from "../core/approvals.js";
import { moment } from "../core/words.js";
import { ConfirmButton } from "../parts/confirm.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { Table } from "../parts/table.js";
import { request } from "../net/api.js";
import { approvals } from "../state/approvals.js";
import { now, sessions } from "../state/store.js";
import { ApprovalCard } from "../views/approval_card.js";
import { PlanAsk } from "../views/plan_ask.js";
import { QuestionCard } from "../views/question_card.js";

export function Approvals() {
  const { data, trouble, reload } = useResource("/approvals/remembered");
  const seconds = useSeconds();
  const waiting = [...approvals.value.values()].filter((one) => !one.decision && (one.expires_at == null || one.expires_at > seconds));
  const decided = [...approvals.value.values()].filter((one) => one.decision === "allow_session").length;
  useEffect(() => void (decided && reload()), [decided]);
  const columns = [
    { id: "tool", title: "Tool", value: (row) => row.tool, show: (row) => html`<code>${row.tool}</code>` },
    { id: "what", title: "What is allowed", show: (row) => html`<span dir="auto">${effectOf(row).map(({ text }) => text).join(" · ") || "without arguments"}</span>`, isWide: true },
    { id: "where", title: "In", show: (row) => html`<${Conversation} id=${row.session_id} />` },
    { id: "when", title: "Since", value: (row) => row.decided_at, show: (row) => moment(row.decided_at, now.value) },
    { id: "acts", title: "Actions", show: (row) => html`<${ConfirmButton} kind="quiet edged" label=${`Take back ${row.tool}, allowed ${moment(row.decided_at, now.value)}`} title="Take this back?" verb="Take it back" text=${`The next such call of ${row.tool} in that conversation asks again. Calls that were made already stay made.`} act=${async () => (await request("DELETE", `/approvals/remembered/${row.grant_id}`), reload())}>Take back</${ConfirmButton}>` },
  ];
  return html`<h2>Waiting for you</h2>
    ${waiting.length ? waiting.map((one) => html`<${Waiting} key=${one.call_id} approval=${one} now=${seconds} />`) : html`<${Empty}>Nothing waits. A call that may change something asks here and in its conversation.</${Empty}>`}
    <h2>Allowed for whole conversations</h2>
    ${trouble ? html`<${Trouble} text="What was allowed could not be read." failure=${trouble} act=${reload} />` : null}
    ${data?.remembered.length ? html`<${Table} label="Allowed for whole conversations" columns=${columns} rows=${data.remembered} keyOf=${(row) => row.grant_id} />` : null}
    ${data && !data.remembered.length ? html`<${Empty}>Nothing is allowed for a whole conversation. A call that you answer with “In this conversation” is listed here.</${Empty}>` : data || trouble ? null : html`<${Loading} />`}`;
}

function Waiting({ approval, now: seconds }) {
  const Card = isQuestion(approval) ? QuestionCard : isPlan(approval) ? PlanAsk : ApprovalCard;
  const session = approval.root_session_id || approval.session_id;
  return html`<${Card} approval=${approval} now=${seconds} />${approval.client ? null : html`<p class="lead"><${Conversation} id=${session} /></p>`}`;
}

function Conversation({ id }) {
  return html`<a href=${`#/c/${encodeURIComponent(id)}`} dir="auto">${sessions.value.get(id)?.title || "its conversation"}</a>`;
}

/** Seconds since 1970, once a second. */
function useSeconds() {
  const [at, tick] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => tick(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, []);
  return at;
}

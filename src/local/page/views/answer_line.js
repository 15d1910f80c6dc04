/** The one quiet line under an answer: its facts, and what can be done with it. */

import { html } from "../html.js";
import { stepsTaken } from "../core/turn.js";
import { counted, duration, moment } from "../core/words.js";
import { branchFrom, edit, rate, regenerate } from "../state/actions.js";
import { inspect } from "../state/inspection.js";
import { now } from "../state/store.js";
import { CopyButton } from "./copy_button.js";
import { Grade } from "./grade.js";
import { Act } from "./act.js";

export function AnswerLine({ turn, conversation }) {
  if (turn.status === "open") return null;
  const rating = turn.scores?.rating ?? null;
  const why = () => inspect({ kind: "turn", queryId: turn.query_id, sessionId: conversation.id }, "story");
  const rateAs = (value) => () => void rate(turn, rating === value ? null : value);
  return html`<footer class="line" data-state="done">
    <span class="line-facts">${facts(turn).map((fact) => html`<span>${fact}</span>`)}<${Grade} critique=${turn.scores?.critique} /></span>
    <span class="acts" role="group" aria-label="What to do with this answer">
      ${turn.answer
        ? html`<${Act} icon="good" word="Good" label="Good answer" class="rate" pressed=${rating === 1} act=${rateAs(1)} />
            <${Act} icon="bad" word="Bad" label="Bad answer" class="rate" pressed=${rating === -1} act=${rateAs(-1)} />
            <${CopyButton} text=${turn.answer} what="answer" isIcon />`
        : null}
      <${Act} icon="edit" word="Edit" label="Edit" tip="Edit the question and ask again" act=${() => void edit(turn)} />
      ${turn.answer && turn.status !== "failed" ? html`<${Act} icon="again" word="Regenerate" label="Regenerate" tip="Regenerate: another answer to the same question, as a new version" act=${() => void regenerate(turn)} />` : null}
      ${turn.answer ? html`<${Act} icon="branch" word="Branch" label="Branch from here" tip="Branch: a new conversation that begins with everything up to here" act=${() => void branchFrom(turn)} />` : null}
      <${Act} icon="why" word="Why" label="Why" tip="Why: what happened for this answer, and what it rests on" class="why-button" act=${why} />
    </span>
  </footer>`;
}

function facts(turn) {
  const total = turn.finished_at && turn.created_at ? turn.finished_at - turn.created_at : turn.usage?.durations?.total;
  const generating = turn.usage?.durations?.generation ?? turn.usage?.durations?.eval;
  const speed = generating > 0.05 && turn.usage?.completion_tokens ? `${Math.round(turn.usage.completion_tokens / generating)} tokens/s` : "";
  const tools = stepsTaken(turn) || (turn.tool_calls.length ? counted(turn.tool_calls.length, "tool") : "");
  const asked = turn.created_at ? moment(turn.created_at, now.value) : "";
  const attempts = turn.attempt > 1 ? `attempt ${turn.attempt}` : "";
  return [asked, total ? duration(total) : "", speed, tools, attempts].filter(Boolean);
}

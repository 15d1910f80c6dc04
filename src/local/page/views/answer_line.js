/** The one quiet line under an answer; it opens the rest. */

import { html } from "../html.js";
import { stepsTaken } from "../core/turn.js";
import { counted, duration, moment } from "../core/words.js";
import { edit, rate } from "../state/actions.js";
import { inspect } from "../state/inspection.js";
import { now } from "../state/store.js";
import { CopyButton } from "./copy_button.js";
import { Grade } from "./grade.js";

export function AnswerLine({ turn, conversation }) {
  if (turn.status === "open") return null;
  const rating = turn.scores?.rating ?? null;
  const why = () => inspect({ kind: "turn", queryId: turn.query_id, sessionId: conversation.id }, "story");
  return html`<footer class="line" data-state="done">
    <span class="line-facts">${facts(turn).map((fact) => html`<span>${fact}</span>`)}<${Grade} critique=${turn.scores?.critique} /></span>
    <span class="push"></span>
    ${turn.answer ? html`<${Rate} turn=${turn} rating=${rating} /><${CopyButton} text=${turn.answer} what="answer" />` : null}
    <button type="button" class="quiet" title="Change the question and ask again" onClick=${() => void edit(turn)}>Edit</button>
    <button type="button" class="quiet why-button" onClick=${why}>Why</button>
  </footer>`;
}

function Rate({ turn, rating }) {
  const button = (value, word, label) =>
    html`<button type="button" class="quiet rate" aria-pressed=${rating === value} aria-label=${label} onClick=${() => void rate(turn, rating === value ? null : value)}>${word}</button>`;
  return html`${button(1, "Good", "Good answer")}${button(-1, "Bad", "Bad answer")}`;
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

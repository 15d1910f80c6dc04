/** One agent: what it was asked and has answered, and the letters that it wrote and got. */

import { html } from "../html.js";
import { isOpen } from "../core/agent_tree.js";
import { duration, figure, moment } from "../core/words.js";
import { Back, Facts, State, Words } from "../parts/detail.js";
import { Button } from "../parts/field.js";
import { useLive } from "../parts/live.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { addressOf } from "../state/screens.js";
import { now } from "../state/store.js";
import { AgentState, StopButton } from "./state.js";

const TASK_STATES = { asked: ["busy", "working"], answered: ["good", "answered"], failed: ["bad", "failed"], cancelled: ["off", "cancelled"], repeated: ["off", "asked again"] };

/** @param {{id: string}} given */
export function AgentDetail({ id }) {
  const { data: agent, trouble, reload } = useResource(`/agents/${encodeURIComponent(id)}`);
  useLive("swarm", reload);
  return html`<${Back} href=${addressOf("agents")}>All agents</${Back}>
    <${ScreenHead} title=${agent?.name ?? "Agent"}>${agent && isOpen(agent) ? html`<${StopButton} agent=${agent} count=${agent.used.children} done=${reload} />` : null}<${Button} act=${reload}>Reload</${Button}></${ScreenHead}>
    ${trouble ? html`<${Trouble} text=${trouble.kind === "not_found" ? "There is no such agent. Agents are forgotten after 30 days, or with their conversation." : "The agent could not be read."} failure=${trouble.kind === "not_found" ? null : trouble} act=${reload} />` : null}
    ${agent ? html`<div><${Agent} agent=${agent} /></div>` : trouble ? null : html`<${Loading} />`}`;
}

function Agent({ agent }) {
  const { used, budget } = agent;
  const conversation = `#/c/${encodeURIComponent(agent.root_session_id)}/${encodeURIComponent(agent.root_query_id)}`;
  return html`<${Facts} rows=${[
      ["State", html`<${AgentState} agent=${agent} />`],
      ["Works on", html`<a href=${conversation}>${agent.question || "a question"}</a>`],
      ["Made by", agent.parent_id ? html`<a href=${addressOf("agents", "agent", agent.parent_id)}>another agent</a>` : "the model that answers the question"],
      ["Made", moment(agent.made_at, now.value)],
      ["Ended", agent.ended_at ? moment(agent.ended_at, now.value) : ""],
      ["Tokens", `${figure(used.tokens)} of ${figure(budget.tokens)}`],
      ["Tool calls", `${figure(used.calls)} of ${figure(budget.calls)}`],
      ["Time", `${duration(used.seconds) || "0 s"} of ${duration(budget.seconds)}`],
      ["Agents of its own", `${figure(used.children)} of ${figure(budget.children)}`],
      ["Untrusted content", agent.tainted ? "yes: what it says may repeat what others wrote" : ""],
    ]} />
    <h2>Tasks and results</h2>
    ${agent.given.length ? html`<ol class="things">${agent.given.map((task) => html`<${Task} key=${task.query_id} task=${task} agent=${agent} />`)}</ol>` : html`<${Empty}>It has no task yet.</${Empty}>`}
    <h2>Letters</h2>
    ${agent.letters.length ? html`<ul class="things">${agent.letters.map((letter, index) => html`<${Letter} key=${index} letter=${letter} />`)}</ul>` : html`<${Empty}>It has written no letter and got none. Agents write to each other where <code>offer: all</code> is set in the settings of swarm.</${Empty}>`}`;
}

function Task({ task, agent }) {
  const [tone, word] = TASK_STATES[task.state] ?? ["off", task.state];
  return html`<li><div class="head"><h3 class="grow" dir="auto">${task.text}</h3><${State} state=${tone}>${word}</${State}><span class="num">${moment(task.asked_at, now.value)}</span></div>
    ${task.answer ? html`<${Words}>${task.answer}</${Words}>` : null}
    ${task.error ? html`<p class="trouble">${task.error.message}</p>` : null}
    <p><a href=${`#/c/${encodeURIComponent(agent.agent_id)}/${encodeURIComponent(task.query_id)}`}>Open its conversation</a>${task.tokens ? html` <small>${figure(task.tokens)} tokens</small>` : null}${task.sources.length ? html` <small dir="auto">read from ${task.sources.join(", ")}</small>` : null}</p></li>`;
}

function Letter({ letter }) {
  const name = (who) => (who === "root" ? "the answering model" : who);
  return html`<li><div class="head"><b class="grow" dir="auto">${name(letter.sender)} to ${name(letter.to)}</b>${letter.tainted ? html`<span class="tag">contains untrusted content</span>` : null}${letter.is_read ? null : html`<span class="tag">not read yet</span>`}<span class="num">${moment(letter.at, now.value)}</span></div>
    <${Words}>${letter.text}</${Words}></li>`;
}

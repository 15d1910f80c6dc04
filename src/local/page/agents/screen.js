/** The agents that work on parts of questions, the goals that are checked, and what LoCAL2 does by itself. */

import { html, useState } from "../html.js";
import { byQuestion, countBelow, isOpen } from "../core/agent_tree.js";
import { counted, figure, moment } from "../core/words.js";
import { Example } from "../parts/example.js";
import { Button } from "../parts/field.js";
import { useLive } from "../parts/live.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { Tabs } from "../parts/tabs.js";
import { addressOf } from "../state/screens.js";
import { me, now } from "../state/store.js";
import { AgentDetail } from "./agent.js";
import { Goals } from "./goals.js";
import { Reflection } from "./reflection.js";
import { AgentState, StopButton } from "./state.js";

const TABS = [{ id: "agents", title: "Agents" }, { id: "goals", title: "Goals" }, { id: "reflection", title: "Reflection" }];
const TEXTS = {
  agents: "Helpers that work on parts of a question side by side.",
  goals: "What you want to achieve. LoCAL2 checks it from time to time and remarks on it.",
  reflection: "What LoCAL2 does while nobody asks anything.",
};
const MOST = 20; // questions at first

/** @param {{path: string[]}} given */
export function Screen({ path: [part = "agents", id = ""] }) {
  if (part === "agent" && id) return html`<${AgentDetail} key=${id} id=${id} />`;
  const tabs = me.value.owner ? TABS : TABS.slice(0, 1);
  const at = tabs.find((one) => one.id === part)?.id ?? "agents";
  return html`<${ScreenHead} title="Agents" text=${TEXTS[at]} />
    <${Tabs} screen="agents" at=${at} tabs=${tabs} />
    <div>${at === "goals" ? html`<${Goals} />` : at === "reflection" ? html`<${Reflection} />` : html`<${Agents} />`}</div>`;
}

function Agents() {
  const { data, trouble, reload } = useResource("/agents");
  const [most, show] = useState(MOST);
  useLive("swarm", reload);
  const questions = byQuestion(data?.agents ?? []);
  return html`${trouble ? html`<${Trouble} text="The agents could not be read." failure=${trouble} act=${reload} />` : null}
    ${questions.slice(0, most).map((one) => html`<${Question} key=${one.query_id} of=${one} reload=${reload} />`)}
    ${questions.length > most ? html`<${Button} act=${() => show(most + MOST)}>Show ${Math.min(MOST, questions.length - most)} more questions</${Button}>` : null}
    ${data ? (questions.length ? null : html`<${Empty}>No agent has worked in the last 30 days: a model makes some when parts of a question can be worked on side by side.<${Example} ask="Compare Oslo, Bergen and Tromsø in March, with an agent for each" /></${Empty}>`) : trouble ? null : html`<${Loading} />`}
    <div class="deeds"><${Button} act=${reload}>Reload</${Button}></div>`;
}

function Question({ of, reload }) {
  const address = ["#", "c", of.session_id, of.query_id].map((part, index) => (index < 2 ? part : encodeURIComponent(part))).join("/");
  return html`<section class="root-question"><h2 dir="auto"><a href=${address}>${of.question || "A question"}</a> <small>${counted(of.count, "agent")} · ${moment(of.at, now.value)}</small></h2>
    <${Branches} branches=${of.branches} reload=${reload} /></section>`;
}

function Branches({ branches, reload }) {
  return html`<ul class="branches">${branches.map((branch) => html`<${Branch} key=${branch.agent.agent_id} branch=${branch} reload=${reload} />`)}</ul>`;
}

function Branch({ branch, reload }) {
  const { agent, below } = branch;
  return html`<li><div class="branch-line">
      <span class="grow"><a href=${addressOf("agents", "agent", agent.agent_id)} dir="auto">${agent.name}</a> <span class="task" dir="auto">${agent.task || "no task yet"}</span></span>
      <${AgentState} agent=${agent} /><span class="num">${figure(agent.used.tokens)} tokens</span>
      ${isOpen(agent) ? html`<${StopButton} agent=${agent} count=${countBelow(branch)} done=${reload} />` : null}
    </div>${below.length ? html`<${Branches} branches=${below} reload=${reload} />` : null}</li>`;
}

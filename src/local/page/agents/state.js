/** What an agent does, and the way to stop it. */

import { html } from "../html.js";
import { isOpen } from "../core/agent_tree.js";
import { counted } from "../core/words.js";
import { ConfirmButton } from "../parts/confirm.js";
import { State } from "../parts/detail.js";
import { request } from "../net/api.js";

/** What an agent does, in a word. */
export function AgentState({ agent }) {
  if (agent.error) return html`<${State} state="bad">${isOpen(agent) ? "task failed" : "failed"}</${State}>`;
  const [tone, word] = { WORKING: ["busy", "working"], STOPPING: ["busy", "stopping"], READY: ["good", "ready"] }[agent.state] ?? ["off", "ended"];
  return html`<${State} state=${tone}>${word}</${State}>`;
}

/** @param {{agent: any, count: number, done: () => void}} given */
export function StopButton({ agent, count, done }) {
  const others = count ? ` and the ${counted(count, "agent")} below it` : "";
  return html`<${ConfirmButton} kind="quiet edged" label=${`Stop ${agent.name}`} title=${`Stop ${agent.name}?`} verb="Stop it" text=${`It ends${others}. What it is doing is cancelled, and the rest of its budget is not used. Results that it has already given stay.`}
    act=${async () => (await request("POST", `/agents/${encodeURIComponent(agent.agent_id)}/stop`), done())}>Stop</${ConfirmButton}>`;
}

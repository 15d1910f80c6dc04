/** The tools that servers say they have, compared with what was approved: read before they are approved. */

import { html, useState } from "../html.js";
import { argumentsOf } from "../core/arguments.js";
import { counted } from "../core/words.js";
import { State, Words } from "../parts/detail.js";
import { Button } from "../parts/field.js";
import { Loading, Trouble } from "../parts/notes.js";
import { Arguments } from "./tools.js";

const CHANGES = { new: ["busy", "new"], changed: ["bad", "changed since it was approved"], "as approved": ["good", "as approved"], gone: ["off", "not there any more"] };

/** `look` returns what the servers say, `approve` approves it by its id. Both throw. @param {{look: () => Promise<any>,
 * approve: (reviewId: string) => Promise<any>, label: string, note: string, failed?: (failure: any) => any, done: () => void}} given */
export function Review({ look, approve, label, note, failed = () => null, done }) {
  const [state, put] = useState({ name: "idle", found: null, failure: null, said: "" });
  const read = async () => {
    put({ name: "looking", found: null, failure: null, said: "" });
    await look().then((found) => put({ name: "found", found, failure: null, said: "" }), (failure) => put({ name: "idle", found: null, failure, said: "" }));
  };
  const accept = async () => {
    try {
      const { problem } = await approve(state.found.review_id);
      put({ name: "idle", found: null, failure: null, said: problem ? `Approved, but the tools are not offered yet: ${problem}` : "Approved. The tools are offered from the next question on." });
      done();
    } catch (failure) {
      put({ ...state, failure });
    }
  };
  const servers = state.found?.servers ?? [];
  const count = servers.reduce((sum, server) => sum + server.tools.length, 0);
  const isNew = servers.some((server) => server.gone.length || server.tools.some(({ change }) => change !== "as approved"));
  return html`${state.failure ? html`<${Trouble} text=${state.found ? "The tools were not approved." : "The tools could not be read."} failure=${state.failure} act=${read} />${failed(state.failure)}` : null}
    ${state.said ? html`<p role="status">${state.said}</p>` : null}
    ${state.name === "looking" ? html`<p role="status">Asking the server for its tools…</p><${Loading} />` : null}
    ${state.name === "found" && !isNew ? html`<p role="status">${counted(count, "tool")} as approved: nothing has changed.</p>${servers.flatMap(({ refused }) => refused.map((why) => html`<p class="help" key=${why}>Left out: ${why}</p>`))}<div class="deeds"><${Button} act=${read}>${label}</${Button}></div>` : state.name === "found" ? html`<h2>To be approved</h2>${servers.map((server) => html`<${Server} key=${server.name} server=${server} hasName=${servers.length > 1} />`)}
        <p class="lead">The model is shown exactly these descriptions. A tool that describes itself differently later is not called before you approve it again.</p>
        <div class="deeds"><${Button} kind="accent" act=${accept}>Approve ${counted(count, "tool")}</${Button}> <${Button} act=${() => put({ name: "idle", found: null, failure: null, said: "" })}>Close</${Button}></div>`
      : html`<p class="lead">${note}</p><div class="deeds"><${Button} act=${read}>${label}</${Button}></div>`}`;
}

function Server({ server, hasName }) {
  return html`${hasName ? html`<h3 dir="auto">${server.name}</h3>` : null}
    <ul class="things" aria-label=${`Tools of ${server.name}`}>${server.tools.map((tool) => html`<${Tool} key=${tool.name} tool=${tool} level=${server.safety} />`)}
      ${server.gone.map((name) => html`<li key=${name}><div class="head"><code class="grow">${name}</code><${State} state="off">${CHANGES.gone[1]}</${State}></div></li>`)}
      ${server.refused.map((why) => html`<li key=${why}><p class="trouble">Left out: ${why}</p></li>`)}</ul>`;
}

function Tool({ tool, level }) {
  const [tone, word] = CHANGES[tool.change] ?? ["off", tool.change];
  const given = argumentsOf(tool.parameters);
  return html`<li><div class="head"><code class="grow">${tool.name}</code><${State} state=${tone}>${word}</${State}><span class="tag">${level}</span></div>
    <${Words}>${tool.description}</${Words}>${given.length ? html`<${Arguments} given=${given} />` : null}</li>`;
}

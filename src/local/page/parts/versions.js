/** A text of the owner's with its versions: the change that is proposed, and the way back to an earlier text. */

import { html, useState } from "../html.js";
import { ownerRequest } from "../state/system.js";
import { ConfirmButton } from "./confirm.js";
import { Code } from "./detail.js";
import { Button } from "./field.js";
import { Trouble } from "./notes.js";

/** @param {{data: {proposal: any, versions: any[]}, path: string, name: string, done: () => void}} given `path` is the
 * route of the text; `done` is called after a change */
export function Versions({ data: { proposal, versions }, path, name, done }) {
  const [failure, fail] = useState(null);
  const after = () => (fail(null), done());
  const approve = () => ownerRequest("POST", `${path}/proposal`, { decision: "approve", digest: proposal.digest }).then(after, fail);
  const reject = () => ownerRequest("POST", `${path}/proposal`, { decision: "reject" }).then(after);
  const restore = (version) => ownerRequest("POST", `${path}/revert`, { version }).then(after);
  return html`${failure ? html`<${Trouble} text="Nothing was changed." failure=${failure} label="Show it again" act=${after} />` : null}
    ${proposal ? html`<h2>Proposed change</h2><p class="lead">Proposed by ${proposal.by} on ${proposal.proposed_at.slice(0, 10)}.</p>
      <pre class="text-block text-diff" tabindex="0" role="region" aria-label=${`Proposed change of ${name}`}>${proposal.diff.map((line, index) => html`<span key=${index} data-mark=${line[0]}>${line || " "}</span>`)}</pre>
      <div class="deeds"><${Button} kind="accent" act=${approve}>Apply this change</${Button}> <${ConfirmButton} title="Discard this proposal?" verb="Discard it" text="The proposed text is deleted. The present text stays as it is." act=${reject}>Discard</${ConfirmButton}></div>` : null}
    ${versions.length > 1 ? html`<h2>Versions</h2><ul class="things">${versions.map((version, index) => html`<li key=${version.number}><div class="head"><b>${version.number}</b><span class="grow">${version.by}</span><span class="num">${version.changed_at.slice(0, 16).replace("T", " ")} UTC</span>
      ${index ? html`<${ConfirmButton} kind="quiet edged" label=${`Restore version ${version.number}`} title=${`Restore version ${version.number}?`} verb="Restore it" text="The present text is kept as a version, so that you can come back to it." act=${() => restore(version.number)}>Restore</${ConfirmButton}>` : html`<span class="tag">now</span>`}</div>
      <details><summary>Text</summary><${Code} label=${`Version ${version.number}`} text=${version.text || "(no text)"} /></details></li>`)}</ul>` : null}`;
}

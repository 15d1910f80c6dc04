/** What the doctor finds: the problems first, each with what to do about it and, where that is safe, a button. */

import { html, useState } from "../html.js";
import { fixOf } from "../core/system_tables.js";
import { counted } from "../core/words.js";
import { Button } from "../parts/field.js";
import { Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { addressOf, goToScreen } from "../state/screens.js";
import { participants } from "../state/store.js";
import { control, pull } from "../state/system.js";

const WORDS = { ok: "All is well", warn: "Could be better", fail: "Does not work" };

export function Doctor() {
  const [turn, again] = useState(0);
  const check = () => again((count) => count + 1);
  return html`<div class="deeds"><button type="button" class="edged" onClick=${check}>Check again</button></div><${Checks} key=${turn} />`;
}

function Checks() {
  const { data, trouble, reload } = useResource("/doctor");
  if (trouble) return html`<${Trouble} text="The checks could not be made." failure=${trouble} act=${reload} />`;
  if (!data) return html`<p role="status">Checking the installation, the model servers and the stores. This takes some seconds.</p><${Loading} />`;
  const troubles = ["fail", "warn"].flatMap((status) => data.findings.filter((one) => one.status === status));
  const well = data.findings.filter((one) => one.status === "ok");
  return html`<p role="status">${troubles.length ? `${counted(troubles.length, "finding")} to look at, ${counted(well.length, "check")} without a problem.` : `All ${counted(well.length, "check")} found nothing wrong.`}</p>
    ${troubles.length ? html`<ul class="findings" aria-label="To look at">${troubles.map((one, index) => html`<${Finding} key=${index} finding=${one} />`)}</ul>` : null}
    <details class="well" open=${!troubles.length}><summary>${counted(well.length, "check")} without a problem</summary>
      <ul class="findings" aria-label="Without a problem">${well.map((one, index) => html`<${Finding} key=${index} finding=${one} />`)}</ul></details>`;
}

function Finding({ finding }) {
  const fix = fixOf(finding, participants.value);
  return html`<li data-status=${finding.status}><div><b>${finding.name}</b> <span class="tag">${WORDS[finding.status] ?? finding.status}</span>
      <p dir="auto">${finding.text}</p>${finding.fix ? html`<p class="fix" dir="auto"><b>To fix it:</b> ${finding.fix}</p>` : null}</div>
    ${fix ? html`<${Fix} fix=${fix} />` : null}</li>`;
}

function Fix({ fix: { kind, name } }) {
  if (kind === "restart") return html`<${Button} label=${`Restart ${name}`} act=${() => control("restart", name)}>Restart it<//>`;
  if (kind === "settings") return html`<a class="as-button edged" href=${addressOf("settings", name)}>Settings of ${name.replaceAll("_", " ")}</a>`;
  const fetch = () => (goToScreen("system", "models"), pull(name));
  return html`<${Button} label=${`Download ${name}`} act=${fetch}>Download it<//>`;
}

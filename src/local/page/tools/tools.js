/** The tools, each with its level and its arguments. */

import { html, useState } from "../html.js";
import { argumentsOf } from "../core/arguments.js";
import { duration } from "../core/words.js";
import { Code } from "../parts/detail.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { Table } from "../parts/table.js";

const LEVELS = { L0: "only reads", L1: "can be undone", L2: "cannot be undone" };

const COLUMNS = [
  { id: "tool", title: "Tool", value: (row) => row.tool, show: (row) => html`<code>${row.tool}</code>` },
  { id: "does", title: "What it does", show: (row) => html`<${Does} tool=${row} />`, isWide: true },
  { id: "category", title: "Kind", value: (row) => row.category },
  { id: "safety", title: "Level", value: (row) => row.safety, show: (row) => html`${row.safety} <small>${LEVELS[row.safety] ?? ""}</small>` },
];

export function ToolList() {
  const { data, trouble, reload } = useResource("/tools?of=models");
  const [words, search] = useState("");
  const shown = (data?.tools ?? []).filter((row) => `${row.tool} ${row.description} ${row.category}`.toLowerCase().includes(words.trim().toLowerCase()));
  return html`${trouble ? html`<${Trouble} text="The tools could not be read." failure=${trouble} act=${reload} />` : null}
    ${data?.tools.length ? html`<p class="find-box"><input type="search" aria-label="Find a tool" placeholder="Find a tool" value=${words} onInput=${(event) => search(event.currentTarget.value)} /></p>` : null}
    ${shown.length ? html`<${Table} label="Tools" columns=${COLUMNS} rows=${shown} keyOf=${(row) => row.tool} />` : null}
    ${data && !shown.length ? html`<${Empty}>${data.tools.length ? "No tool has these words." : "There is no tool. Tools come from the participants of the system, from MCP servers and from skills."}</${Empty}>` : data || trouble ? null : html`<${Loading} />`}`;
}

function Does({ tool }) {
  const given = argumentsOf(tool.parameters);
  return html`${tool.description.replace(/\s*\n\s*/g, " ")}
    <details><summary aria-label=${`Details of ${tool.tool}`}>Arguments and limits</summary>
      ${given.length ? html`<${Arguments} given=${given} />` : html`<p class="empty">It takes no arguments.</p>`}
      <p><small>${[`stopped after ${duration(tool.timeout_seconds)}`, tool.effect === "read" ? "changes nothing" : "may change something", tool.trusted ? "its results count as trusted" : "its results count as untrusted content"].join(" · ")}</small></p>
      <${Code} label=${`Schema of ${tool.tool}`} text=${JSON.stringify(tool.parameters, null, 2)} /></details>`;
}

/** @param {{given: {name: string, type: string, text: string, isRequired: boolean}[]}} given */
export function Arguments({ given }) {
  return html`<ul class="arguments">${given.map((one) => html`<li key=${one.name}><code>${one.name}</code> <small>${[one.type, one.isRequired ? "" : "optional"].filter(Boolean).join(", ")}</small>${one.text ? html` <span dir="auto">${one.text}</span>` : null}</li>`)}</ul>`;
}

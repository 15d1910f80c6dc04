/** What the models may call. */

import { html } from "../html.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { Table } from "../parts/table.js";

const COLUMNS = [
  { id: "tool", title: "Tool", value: (row) => row.tool, show: (row) => html`<code>${row.tool}</code>` },
  { id: "does", title: "What it does", show: (row) => row.description.replace(/\s*\n\s*/g, " "), isWide: true },
  { id: "category", title: "Kind", value: (row) => row.category },
  { id: "safety", title: "Level", value: (row) => row.safety },
];

export function Screen() {
  const { data, trouble, reload } = useResource("/tools");
  return html`<${ScreenHead} title="Tools" text="What models and programs can call. L0 only reads; the other levels ask first, as the mode says." />
    ${trouble ? html`<${Trouble} text="The tools could not be read." failure=${trouble} act=${reload} />` : null}
    ${data?.tools.length ? html`<${Table} label="Tools" columns=${COLUMNS} rows=${data.tools} keyOf=${(row) => row.tool} />` : null}
    ${data && !data.tools.length ? html`<${Empty}>There is no tool.</${Empty}>` : data || trouble ? null : html`<${Loading} />`}`;
}

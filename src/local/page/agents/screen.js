/** The agents that work on parts of questions. */

import { html } from "../html.js";
import { figure, moment } from "../core/words.js";
import { Button } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { Table } from "../parts/table.js";
import { now } from "../state/store.js";

const COLUMNS = [
  { id: "name", title: "Agent", value: (row) => row.name },
  { id: "state", title: "State", value: (row) => row.state },
  { id: "task", title: "Task", value: (row) => row.task, isWide: true },
  { id: "tokens", title: "Tokens", value: (row) => row.used?.tokens ?? 0, show: (row) => figure(row.used?.tokens ?? 0), isNumber: true },
  { id: "made", title: "Made", value: (row) => row.made_at, show: (row) => moment(row.made_at, now.value) },
];

export function Screen() {
  const { data, trouble, reload } = useResource("/agents");
  return html`<${ScreenHead} title="Agents" text="Helpers that work on parts of a question side by side."><${Button} act=${reload}>Reload</${Button}></${ScreenHead}>
    ${trouble ? html`<${Trouble} text="The agents could not be read." failure=${trouble} act=${reload} />` : null}
    ${data?.agents.length ? html`<${Table} label="Agents" columns=${COLUMNS} rows=${data.agents} keyOf=${(row) => row.agent_id} />` : null}
    ${data && !data.agents.length ? html`<${Empty}>No agent is at work. A model makes some where a question has parts.</${Empty}>` : data || trouble ? null : html`<${Loading} />`}`;
}

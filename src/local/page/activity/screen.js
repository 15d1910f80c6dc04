/** Who did what with whose approval, the latest first. */

import { html, useState } from "../html.js";
import { moment } from "../core/words.js";
import { Button } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { Table } from "../parts/table.js";
import { request } from "../net/api.js";
import { now } from "../state/store.js";

const COLUMNS = [
  { id: "at", title: "When", value: (row) => row.at, show: (row) => moment(row.at, now.value) },
  { id: "kind", title: "Kind", value: (row) => row.kind },
  { id: "what", title: "What", value: (row) => row.what, show: (row) => what(row), isWide: true },
  { id: "by", title: "By", value: (row) => row.by },
];

/** In words where it has some, and a way to its conversation. */
function what({ what: words, tool, session_id: session, query_id: query }) {
  const text = words || tool || "";
  if (!session) return text;
  return html`<a href=${["#", "c", ...[session, query].filter(Boolean).map(encodeURIComponent)].join("/")}>${text || "conversation"}</a>`;
}

export function Screen() {
  const { data, trouble, reload } = useResource("/activity?limit=100");
  return html`<${ScreenHead} title="Activity" text="Questions, tool calls, approvals, jobs and deletions, the latest first."><${Button} act=${reload}>Reload</${Button}></${ScreenHead}>
    ${trouble ? html`<${Trouble} text="The activity could not be read." failure=${trouble} act=${reload} />` : null}
    ${data ? html`<${Lines} key=${data.activity[0]?.at} first=${data} />` : trouble ? null : html`<${Loading} />`}`;
}

function Lines({ first }) {
  const [page, put] = useState({ rows: first.activity, before: first.before });
  const [failure, fail] = useState(null);
  const earlier = () =>
    request("GET", `/activity?limit=100&before=${page.before}`).then(({ activity, before }) => (fail(null), put({ rows: [...page.rows, ...activity], before })), fail);
  if (!page.rows.length) return html`<${Empty}>Nothing has happened yet.</${Empty}>`;
  return html`<${Table} label="Activity" columns=${COLUMNS} rows=${page.rows} keyOf=${(row) => `${row.at} ${row.kind} ${row.query_id ?? ""} ${row.call_id ?? ""}`} />
    ${failure ? html`<${Trouble} text="Earlier activity could not be read." failure=${failure} act=${earlier} />` : page.before ? html`<${Button} act=${earlier}>Earlier</${Button}>` : null}`;
}

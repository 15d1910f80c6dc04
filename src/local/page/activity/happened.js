/** Who did what with whose approval, the latest first. */

import { html, useEffect, useState } from "../html.js";
import { moment } from "../core/words.js";
import { Example } from "../parts/example.js";
import { Button } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { Table } from "../parts/table.js";
import { request } from "../net/api.js";
import { me, now } from "../state/store.js";
import { ACT, Chosen, KINDS_OF_ACTS, Participants, Sessions } from "./filters.js";

const COLUMNS = [
  { id: "at", title: "When", value: (row) => row.at, show: (row) => moment(row.at, now.value) },
  { id: "kind", title: "Kind", value: (row) => ACT[row.kind] ?? row.kind },
  { id: "what", title: "What", value: (row) => row.what, show: (row) => what(row), isWide: true },
  { id: "by", title: "By", value: (row) => row.by },
];

/** In words where it has some, and a way to its conversation. */
function what({ what: words, tool, session_id: session, query_id: query }) {
  const text = words || tool || "";
  if (!session) return text;
  return html`<a href=${["#", "c", ...[session, query].filter(Boolean).map(encodeURIComponent)].join("/")}>${text || "conversation"}</a>`;
}

export function Happened() {
  const [wanted, want] = useState({ kind: "", session: "", participant: "" });
  const [page, put] = useState({ rows: null, before: null });
  const [failure, fail] = useState(null);
  const path = (before) => {
    const query = new URLSearchParams({ limit: "100" });
    for (const [name, value] of Object.entries({ ...wanted, before })) if (value) query.set(name, String(value));
    return `/activity?${query}`;
  };
  const load = (stop) => request("GET", path(null), undefined, { signal: stop?.signal }).then(({ activity: rows, before }) => stop?.signal.aborted || (fail(null), put({ rows, before })), (one) => stop?.signal.aborted || fail(one));
  useEffect(() => {
    const stop = new AbortController();
    void load(stop);
    return () => stop.abort();
  }, [wanted]);
  const earlier = () => request("GET", path(page.before)).then(({ activity, before }) => (fail(null), put({ rows: [...(page.rows ?? []), ...activity], before })), fail);
  return html`<div class="filters"><${Chosen} label="Kind" at=${wanted.kind} options=${KINDS_OF_ACTS} choose=${(kind) => want({ ...wanted, kind })} />
      <${Sessions} at=${wanted.session} choose=${(session) => want({ ...wanted, session })} />
      ${me.value.owner ? html`<${Participants} at=${wanted.participant} choose=${(participant) => want({ ...wanted, participant })} />` : null}<span class="push"></span><${Button} act=${() => load(null)}>Reload</${Button}></div>
    ${failure ? html`<${Trouble} text="The activity could not be read." failure=${failure} act=${() => void load(null)} />` : null}
    ${page.rows?.length ? html`<${Table} label="Activity" columns=${COLUMNS} rows=${page.rows} keyOf=${(row) => row.number} />` : null}
    ${page.rows && !page.rows.length ? html`<${Empty}>${Object.values(wanted).some(Boolean) ? "Nothing of this kind has happened." : html`Nothing has happened yet.<${Example} ask="What is the capital of France?" />`}</${Empty}>` : page.rows || failure ? null : html`<${Loading} />`}
    ${page.before ? html`<p class="more-messages"><${Button} act=${earlier}>Earlier</${Button}></p>` : null}`;
}

/** Past questions and how each went: found by what went wrong, by model, by tool or by conversation. */

import { html, useEffect, useState } from "../html.js";
import { counted, duration, moment } from "../core/words.js";
import { Example } from "../parts/example.js";
import { Button } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { Table } from "../parts/table.js";
import { request } from "../net/api.js";
import { go } from "../state/actions.js";
import { inspect } from "../state/inspection.js";
import { now } from "../state/store.js";
import { Chosen, Sessions } from "./filters.js";

/** @type {[string, string][]} */
const ONLY = [["all", "all"], ["failed", "without an answer"], ["slow", "30 seconds or longer"], ["poor", "graded 1 or 2, or rated bad"]];
const STATES = { answered: "answered", cancelled: "stopped", failed: "no answer" };

const COLUMNS = [
  { id: "query", title: "Question", value: (row) => row.query, show: (row) => html`<a href=${addressOf(row)}>${row.query || "(no words)"}</a>`, isWide: true },
  { id: "at", title: "When", value: (row) => row.at, show: (row) => html`<span class="at">${moment(row.at, now.value)}</span>` },
  { id: "status", title: "Result", value: (row) => row.status, show: (row) => html`<span class=${row.status === "failed" ? "trouble" : null}>${STATES[row.status]}</span>${row.error && row.status === "failed" ? html` <small>${row.error.message}</small>` : null}` },
  { id: "seconds", title: "Took", value: (row) => row.seconds ?? 0, show: (row) => duration(row.seconds) || "–", isNumber: true },
  { id: "model", title: "Model", value: (row) => row.model, show: (row) => html`${row.model || "–"} <small>${[row.model_calls ? counted(row.model_calls, "call") : "", ...row.tools].filter(Boolean).join(", ")}</small>` },
  { id: "score", title: "Grade", value: (row) => row.score ?? 0, show: (row) => [row.score ?? "–", { 1: "you: good", "-1": "you: bad" }[row.rating]].filter(Boolean).join(", ") },
  { id: "why", title: "Why", show: (row) => html`<button type="button" class="quiet edged" aria-label=${`Where the time of “${row.query}” went`} onClick=${() => look(row)}>Look</button>` },
];

/** Go to the answer, with where its time went beside it. */
function look({ session_id: sessionId, query_id: queryId }) {
  go(sessionId, queryId);
  inspect({ kind: "turn", sessionId, queryId }, "time");
}

const addressOf = ({ session_id: session, query_id: query }) => ["#", "c", ...[session, query].filter(Boolean).map(encodeURIComponent)].join("/");

export function Questions() {
  const [wanted, want] = useState({ only: "all", session: "", model: "", tool: "" });
  const [page, put] = useState({ rows: null, before: null });
  const [failure, fail] = useState(null);
  const [known, know] = useState({ models: new Set(), tools: new Set() });
  const read = (before, signal) => {
    const query = new URLSearchParams(Object.entries({ ...wanted, before }).filter(([, value]) => value).map(([name, value]) => [name, String(value)]));
    return request("GET", `/questions?${query}`, undefined, { signal });
  };
  const took = (rows, before, earlier = []) => {
    fail(null);
    put({ rows: [...earlier, ...rows], before });
    know((had) => ({ models: new Set([...had.models, ...rows.map((row) => row.model).filter(Boolean)]), tools: new Set([...had.tools, ...rows.flatMap((row) => row.tools)]) }));
  };
  const load = (stop) => read(null, stop?.signal).then(({ questions, before }) => stop?.signal.aborted || took(questions, before), (one) => stop?.signal.aborted || fail(one));
  useEffect(() => {
    const stop = new AbortController();
    void load(stop);
    return () => stop.abort();
  }, [wanted]);
  const earlier = () => read(page.before).then(({ questions, before }) => took(questions, before, page.rows ?? []), fail);
  const names = (found) => [["", "all"], ...[...found].sort().map((name) => [name, name])];
  const isFiltered = wanted.only !== "all" || wanted.session || wanted.model || wanted.tool;
  return html`<div class="filters"><${Chosen} label="Show" at=${wanted.only} options=${ONLY} choose=${(only) => want({ ...wanted, only })} />
      <${Chosen} label="Model" at=${wanted.model} options=${names(known.models)} choose=${(model) => want({ ...wanted, model })} />
      <${Chosen} label="Tool" at=${wanted.tool} options=${names(known.tools)} choose=${(tool) => want({ ...wanted, tool })} />
      <${Sessions} at=${wanted.session} choose=${(session) => want({ ...wanted, session })} /><span class="push"></span><${Button} act=${() => load(null)}>Reload</${Button}></div>
    ${failure ? html`<${Trouble} text="The questions could not be read." failure=${failure} act=${() => void load(null)} />` : null}
    ${page.rows?.length ? html`<${Table} label="Questions" columns=${COLUMNS} rows=${page.rows} keyOf=${(row) => row.query_id} />` : null}
    ${page.rows && !page.rows.length ? html`<${Empty}>${page.before ? "None of the latest questions matches." : isFiltered ? "No question matches." : html`Nothing was asked yet.<${Example} ask="What is the capital of France?" />`}</${Empty}>` : page.rows || failure ? null : html`<${Loading} />`}
    ${page.before ? html`<p class="more-messages"><${Button} act=${earlier}>Earlier</${Button}></p>` : null}`;
}

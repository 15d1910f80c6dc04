/** The exchanges, the latest first, or those that a search has found, with why; a row opens to show all of one. */

import { html, useEffect, useMemo, useState } from "../html.js";
import { lineOf, longestPart, merged, originOf, outdatedIn, ratingOf } from "../core/memory.js";
import { ago, counted, moment } from "../core/words.js";
import { request } from "../net/api.js";
import { Example } from "../parts/example.js";
import { Button } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { Table } from "../parts/table.js";
import { now, spoken } from "../state/store.js";
import { Why } from "../views/recalls.js";
import { Exchange } from "./exchange.js";
import { focusSoon, useRemembered } from "./live.js";

const PAGE = 50;
/** @type {[string, string][]} */
const ONLY = [["", "all exchanges"], ["pinned", "pinned"], ["rated", "rated by you"], ["poor", "graded 1 or 2, or rated bad"], ["untrusted", "with untrusted content"]];
const NONE = html`<span class="none">–</span>`;

const FIGURES = [
  { id: "age", title: "Age", value: (row) => -row.asked_at, show: (row) => html`<span class="age" title=${moment(row.asked_at, now.value)}>${ago(now.value - row.asked_at)}</span>` },
  { id: "respondent", title: "Respondent", value: (row) => row.respondent_id },
  { id: "score", title: "Grade", value: (row) => row.score, show: (row) => row.score ?? NONE },
  { id: "sentiment", title: "Your rating", value: (row) => row.sentiment, show: (row) => ratingOf(row) || NONE },
  { id: "winner", title: "Winner", value: (row) => row.winner ?? "", show: (row) => row.winner ?? NONE },
  { id: "origin", title: "From", value: originOf },
];

/** The first column opens a row; `extra` is what stands below its words. */
function columnsOf(openId, open, extra, more = []) {
  const show = (row) => html`<button type="button" class="link" aria-expanded=${row.engram_id === openId} onClick=${() => open(row.engram_id === openId ? "" : row.engram_id)}>${lineOf(row)}</button> <${Tags} engram=${row} />${extra(row)}`;
  return [{ id: "query", title: "Question", value: lineOf, show, isWide: true }, ...more, ...FIGURES];
}

function Tags({ engram }) {
  const tags = [engram.pinned ? "pinned" : "", engram.note_of ? "note" : "", engram.tainted ? "with untrusted content" : "", engram.superseded_by ? "outdated" : ""];
  return tags.filter(Boolean).map((tag) => html`<span class="tag" key=${tag}>${tag}</span> `);
}

export function ExchangeList() {
  const [typed, type] = useState("");
  const [asked, ask] = useState("");
  const [only, show] = useState("");
  const search = (event) => {
    event.preventDefault();
    ask(typed.trim());
  };
  const all = () => (type(""), ask(""), document.getElementById("search-memory")?.focus());
  return html`<form class="search-memory" role="search" onSubmit=${search}>
      <label class="unseen" for="search-memory">Search the memory</label>
      <input type="search" id="search-memory" maxlength="2000" autocomplete="off" placeholder="Search words and meaning" dir="auto" value=${typed} onInput=${(event) => type(event.target.value)} />
      <button type="submit" class="edged">Search</button>
      ${asked ? html`<button type="button" class="edged" onClick=${all}>Show all</button>` : null}
    </form>
    ${asked ? html`<${Hits} key=${asked} asked=${asked} />` : html`<p class="only"><label for="only-some">Show</label> <select id="only-some" value=${only} onChange=${(event) => show(event.target.value)}>${ONLY.map(([id, title]) => html`<option key=${id} value=${id}>${title}</option>`)}</select></p><${Latest} key=${only} only=${only} />`}`;
}

/** @param {{only: string}} given */
function Latest({ only }) {
  const some = only ? `&only=${only}` : "";
  const { data, trouble, reload } = useResource(`/memory?limit=${PAGE}${some}`);
  const [page, put] = useState(null);
  const [failure, fail] = useState(null);
  const [openId, open] = useState("");
  useRemembered(reload);
  useEffect(() => {
    if (!data) return;
    const rows = merged(data.engrams, page?.rows ?? [], !data.cursor);
    put({ rows, cursor: rows.length > data.engrams.length ? page.cursor : data.cursor });
  }, [data]);
  if (trouble && !page) return html`<${Trouble} text="The memory could not be read." failure=${trouble} act=${reload} />`;
  if (!page) return html`<${Loading} />`;
  if (!page.rows.length && only) return html`<${Empty}>No exchange matches.</${Empty}>`;
  if (!page.rows.length) return html`<${Empty}>Nothing is remembered yet: every question and its answer will be here, unless the conversation is incognito.<${Example} ask="I take my coffee black." /></${Empty}>`;
  const earlier = () =>
    request("GET", `/memory?limit=${PAGE}${some}&cursor=${encodeURIComponent(page.cursor)}`).then(({ engrams, cursor }) => (fail(null), put({ rows: [...page.rows, ...engrams], cursor }), (spoken.value = `${counted(engrams.length, "earlier exchange")}`)), fail);
  const change = (id, change) => put((before) => ({ ...before, rows: before.rows.flatMap((row) => (row.engram_id !== id ? [row] : change ? [{ ...row, ...change }] : [])) }));
  return html`${trouble ? html`<${Trouble} text="The memory could not be read again." failure=${trouble} act=${reload} />` : null}
    <${Table} label="Exchanges" columns=${columnsOf(openId, open, () => null)} rows=${page.rows} keyOf=${(row) => row.engram_id} below=${(row) => (row.engram_id === openId ? html`<${Exchange} key=${row.engram_id} id=${row.engram_id} change=${(now) => change(row.engram_id, now)} gone=${() => (change(row.engram_id, null), focusSoon())} />` : null)} />
    ${failure ? html`<${Trouble} text="Earlier exchanges could not be read." failure=${failure} act=${() => void earlier()} />` : page.cursor ? html`<p class="more-rows"><${Button} act=${earlier}>Earlier</${Button}> <small>A head of the table sorts the ${counted(page.rows.length, "exchange")} that are shown.</small></p>` : null}`;
}

function Hits({ asked }) {
  const { data, trouble, reload } = useResource(`/memory?limit=${PAGE}&query=${encodeURIComponent(asked)}`);
  const [openId, open] = useState("");
  const [gone, remove] = useState([]);
  const hits = useMemo(() => (data?.hits ?? []).filter((one) => !gone.includes(one.engram_id)), [data, gone]);
  useEffect(() => void (data && (spoken.value = counted(data.hits.length, "exchange") + " found")), [data]);
  if (trouble) return html`<${Trouble} text="The memory could not be searched." failure=${trouble} act=${reload} />`;
  if (!data) return html`<${Loading} />`;
  const longest = longestPart(hits);
  const why = (hit) => html`<${Why} parts=${hit.parts} most=${longest} />${outdatedIn(hit).map((text) => html`<small class="old" key=${text}>${text}</small>`)}${hit.folded?.length ? html`<small>Says the same as ${counted(hit.folded.length, "older exchange")}.</small>` : null}`;
  const match = { id: "relevance", title: "Match", value: (row) => row.relevance, show: (row) => html`<span class="num">${row.relevance.toFixed(2)}</span>` };
  return html`${data.degraded.map((text) => html`<p class="note" key=${text}>${text}</p>`)}
    ${hits.length
      ? html`<${Table} label="Found exchanges" columns=${columnsOf(openId, open, why, [match])} rows=${hits} keyOf=${(row) => row.engram_id} below=${(row) => (row.engram_id === openId ? html`<${Exchange} key=${row.engram_id} id=${row.engram_id} change=${reload} gone=${() => (remove([...gone, row.engram_id]), focusSoon())} />` : null)} />`
      : html`<${Empty}>Nothing in the memory matches “${asked}”.</${Empty}>`}`;
}

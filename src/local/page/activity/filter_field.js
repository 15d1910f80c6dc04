/** One field for the filter language, which the server reads and completes. */

import { html, useEffect, useId, useState } from "../html.js";
import { request } from "../net/api.js";
import { sessions } from "../state/store.js";

const PAUSE_MS = 250; // of typing, before completions are asked for

/** @type {[string, string][]} */
const EXAMPLES = [
  ["subject:query.,response.generation", "questions and answers"],
  ["subject:tool.", "tool calls"],
  ["subject:approval.", "approvals"],
  ["subject:critique.result,pairwise.result,comparison.,user.feedback,reward.event", "grades and ratings"],
  ["subject:memory.,context.", "memory"],
  ["subject:agent.", "agents and transitions"],
  ["subject:participant.,model.", "participants and models"],
  ["subject:bus.gap,bus.dead,bus.rejected,query.failed", "problems"],
];

const check = (filter, signal) => request("GET", `/events/filter?${new URLSearchParams({ filter })}`, undefined, { signal });

/** @param {{at: string, choose: (filter: string) => void}} given it is chosen only once it can be read */
export function FilterField({ at, choose }) {
  const id = useId();
  const [text, type] = useState(at);
  const [error, fault] = useState("");
  const [offered, offer] = useState(EXAMPLES);
  useEffect(() => {
    const stop = new AbortController();
    const ask = () => check(text, stop.signal).then((told) => offer(told.completions.map((one) => [one.text, one.about])), () => {});
    if (!text) offer(EXAMPLES);
    else if (/(^|[\s(-])session[:=]\S*$/.test(text)) offer([...sessions.value.values()].slice(0, 30).map((one) => [`${text.replace(/[^:=]*$/, "")}${one.session_id}`, one.title || ""]));
    const timer = text ? setTimeout(ask, PAUSE_MS) : 0;
    return () => (clearTimeout(timer), stop.abort());
  }, [text]);
  const apply = (value) => (value ? check(value).then((told) => (fault(told.error ?? ""), told.error || choose(value)), (failure) => fault(failure.message)) : (fault(""), choose("")));
  const input = ({ target: { value } }) => {
    type(value);
    if (!value || EXAMPLES.some(([example]) => example === value)) void apply(value);
  };
  return html`<div class="chosen filter"><label for=${id}>Filter</label>
    <input type="search" id=${id} list=${`${id}-offered`} value=${text} placeholder="subject:tool.* -sender:generator words" autocomplete="off" autocapitalize="off" spellcheck="false" aria-invalid=${Boolean(error)} aria-describedby=${error ? `${id}-error` : null} onInput=${input} onChange=${(event) => void apply(event.target.value.trim())} />
    <datalist id=${`${id}-offered`}>${offered.map(([value, about]) => html`<option key=${value} value=${value}>${about}</option>`)}</datalist>
    ${error ? html`<small class="trouble" id=${`${id}-error`} role="alert">${error}</small>` : null}</div>`;
}

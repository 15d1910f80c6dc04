/** The choices above the lists of this screen. */

import { html, useId } from "../html.js";
import { participants, sessions } from "../state/store.js";

/** @type {[string, string][]} */
export const KINDS_OF_ACTS = [["", "everything"], ["query", "questions"], ["call", "tool calls"], ["approval", "approvals"], ["undo", "undone changes"], ["job", "jobs"], ["run", "runs of jobs"], ["goal", "goals"], ["deletion", "deletions"]];

/** One of a kind, in a word. @type {Record<string, string>} */
export const ACT = { query: "question", call: "tool call", undo: "undone", run: "run of a job" };

/** @param {{label: string, at: string, options: [string, string][], choose: (value: string) => void}} given */
export function Chosen({ label, at, options, choose }) {
  const id = useId();
  return html`<div class="chosen"><label for=${id}>${label}</label><select id=${id} onChange=${(event) => choose(event.target.value)}>${options.map(([value, title]) => html`<option key=${value} value=${value} selected=${value === at}>${title}</option>`)}</select></div>`;
}

export function Sessions({ at, choose }) {
  const listed = [...sessions.value.values()].filter((one) => !one.incognito).slice(0, 200);
  return html`<${Chosen} label="Conversation" at=${at} choose=${choose} options=${[["", "all"], ...listed.map((one) => [one.session_id, one.title || one.session_id])]} />`;
}

export function Participants({ at, choose }) {
  const names = [...participants.value.keys()].sort();
  return html`<${Chosen} label="Participant" at=${at} choose=${choose} options=${[["", "all"], ...names.map((name) => [name, name])]} />`;
}

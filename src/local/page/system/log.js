/** The log: its last lines, by level and participant, followed as it is written. */

import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { lastAt, withLines } from "../core/system_tables.js";
import { Field } from "../parts/field.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { participants } from "../state/store.js";
import { request } from "../net/api.js";
import { Choice } from "./usage.js";

const LEVELS = [["debug", "Everything"], ["info", "Information and worse"], ["warning", "Warnings and errors"], ["error", "Errors only"]];
const FOLLOW_MS = 2000;

export function Log() {
  const [level, choose] = useState("info");
  const [participant, take] = useState("");
  const [query, type] = useState("");
  const [isFollowed, follow] = useState(true);
  const names = [...participants.value.keys()].sort();
  const asked = new URLSearchParams({ level, ...(participant ? { participant } : {}), ...(query.trim() ? { query: query.trim() } : {}) }).toString();
  return html`<div class="filters"><${Choice} label="Level" options=${LEVELS} value=${level} change=${choose} />
      <${Choice} label="Participant" options=${[["", "All"], ...names.map((name) => [name, name])]} value=${participant} change=${take} />
      <${Field} label="Query">${(given) => html`<input type="text" ...${given} maxlength="128" placeholder="the beginning of an id" autocomplete="off" spellcheck="false" value=${query} onInput=${(event) => type(event.target.value)} />`}<//>
      <label class="follow"><input type="checkbox" checked=${isFollowed} onChange=${(event) => follow(event.target.checked)} /> Follow</label></div>
    <${Lines} key=${asked} asked=${asked} isFollowed=${isFollowed} />`;
}

/** It is asked again while it is followed and can be seen; the stream does not carry the log. */
function Lines({ asked, isFollowed }) {
  const [lines, put] = useState(null);
  const [trouble, fail] = useState(null);
  const [turn, again] = useState(0);
  const known = useRef([]);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const read = async () => {
      try {
        const since = lastAt(known.current);
        const found = document.hidden && known.current.length ? { lines: [] } : await request("GET", `/logs?${asked}&limit=200${since === null ? "" : `&since=${since}`}`, undefined, { signal: stop.signal });
        known.current = withLines(known.current, found.lines);
        put(known.current);
        fail(null);
      } catch (failure) {
        if (!stop.signal.aborted) fail(failure);
      }
      if (isFollowed && !stop.signal.aborted) timer = setTimeout(read, FOLLOW_MS);
    };
    void read();
    return () => (stop.abort(), clearTimeout(timer));
  }, [isFollowed, turn]);
  return html`${trouble ? html`<${Trouble} text="The log could not be read." failure=${trouble} act=${() => again((count) => count + 1)} />` : null}
    ${lines === null ? (trouble ? null : html`<${Loading} />`) : lines.length ? html`<${Shown} lines=${lines} isFollowed=${isFollowed} />` : html`<${Empty}>No line matches. LoCAL2 writes a log unless it was started with <code>--log-file off</code>.<//>`}`;
}

function Shown({ lines, isFollowed }) {
  const node = useRef(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => void (isFollowed && isAtEnd.current && (node.current.scrollTop = node.current.scrollHeight)), [lines]);
  const look = () => (isAtEnd.current = node.current.scrollHeight - node.current.scrollTop - node.current.clientHeight < 40);
  return html`<div class="log" ref=${node} tabindex="0" role="region" aria-label="Lines of the log" onScroll=${look}>
    ${lines.map((line, index) => html`<p key=${`${line.at} ${index}`} data-level=${line.level}><time>${line.at === null ? "" : clock(line.at)}</time> <b>${line.level ?? ""}</b> <span>${line.participant ?? ""}</span> <span class="log-text" dir="auto">${line.message}</span></p>`)}
  </div>`;
}

const clock = (seconds) => new Date(seconds * 1000).toLocaleString(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });

/** Everything by its name: type a few letters, Enter does it. */

import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { pieces, ranked } from "../core/match.js";
import { request } from "../net/api.js";
import { go } from "../state/actions.js";
import { paletteItems } from "../state/palette_items.js";
import { loadProfiles } from "../state/profiles.js";

const MOST = 40;
const UNTYPED = { Do: 20, Screens: 20, Conversations: 8, Participants: 0 };

export function Palette({ close }) {
  const [text, type] = useState("");
  const [at, move] = useState(0);
  const hits = useHits(text);
  const [places, put] = useState(() => () => []);
  useEffect(() => void (loadProfiles(), import("../state/palette_places.js").then((file) => (file.loadSettings(), put(() => file.places)), () => {})), []);
  const items = paletteItems(places());
  const found = useMemo(() => [...shownOf(items, text), ...hits.map((item) => ({ item, marks: [] }))], [text, items.length, hits]);
  const here = Math.min(at, found.length - 1);
  const list = useRef(null);
  useEffect(() => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }), [here, found]);
  const act = (item) => {
    close();
    item.run();
  };
  const key = (event) => {
    const to = { ArrowDown: here + 1, ArrowUp: here - 1, PageDown: Math.min(here + 8, found.length - 1), PageUp: Math.max(here - 8, 0) }[event.key];
    if (to !== undefined && found.length) move((to + found.length) % found.length);
    else if (event.key === "Enter" && found[here] && !event.isComposing) act(found[here].item);
    else return;
    event.preventDefault();
  };
  return html`<h2 id="dialog-title" class="unseen">Search and commands</h2>
    <input type="text" role="combobox" autocomplete="off" spellcheck="false" aria-label="Search and commands" aria-expanded="true" aria-controls="palette-list" aria-autocomplete="list" aria-activedescendant=${found[here] ? `palette-${here}` : null}
      placeholder="A command, a conversation, a participant, a setting" value=${text} onInput=${(event) => (type(event.target.value), move(0))} onKeyDown=${key} />
    <ul id="palette-list" role="listbox" aria-label="Results" ref=${list} tabindex="-1">${found.map(({ item, marks }, index) => html`
      ${index === 0 || found[index - 1].item.group !== item.group ? html`<li role="presentation" class="group" key=${`group ${index}`}>${item.group}</li>` : null}
      <${Option} key=${item.key} item=${item} marks=${marks} index=${index} isHere=${index === here} act=${act} />`)}</ul>
    <p class=${found.length ? "unseen" : "empty"} role="status">${found.length ? `${found.length} found` : "Nothing was found."}</p>`;
}

function shownOf(items, text) {
  if (text.trim()) return together(ranked(items, text, (item) => item.title, MOST, (item) => item.words ?? ""));
  return Object.entries(UNTYPED).flatMap(([group, most]) => items.filter((item) => item.group === group).slice(0, most).map((item) => ({ item, marks: [] })));
}

/** The best first, and with it what is of its group; settings, which are many, are last. */
function together(found) {
  const groups = [...new Set(found.map(({ item }) => item.group))].sort((one, other) => Number(one === "Settings") - Number(other === "Settings"));
  return groups.flatMap((group) => found.filter(({ item }) => item.group === group));
}

function Option({ item, marks, index, isHere, act }) {
  return html`<li role="option" id=${`palette-${index}`} aria-selected=${isHere} onClick=${() => act(item)}>
    <span dir="auto">${pieces(item.title, marks).map(([piece, isMarked]) => (isMarked ? html`<mark>${piece}</mark>` : piece))}</span>
    ${item.detail ? html`<small dir="auto">${item.detail}</small>` : null}
    ${item.keys ? html`<span class="keys-of">${item.keys[0].split(" ").map((one) => html`<kbd>${one}</kbd>`)}</span>` : null}
  </li>`;
}

/** Conversations in whose texts the words stand, as the server finds them. */
function useHits(text) {
  const [hits, put] = useState([]);
  useEffect(() => {
    const words = text.trim();
    if (words.length < 3) {
      put([]);
      return undefined;
    }
    let isHere = true;
    const timer = setTimeout(() => {
      request("GET", `/sessions?limit=8&query=${encodeURIComponent(words)}`).then(
        ({ sessions }) => isHere && put(sessions.filter((one) => one.match?.excerpt).map(asItem)),
        () => isHere && put([])
      );
    }, 150);
    return () => {
      isHere = false;
      clearTimeout(timer);
    };
  }, [text]);
  return hits;
}

function asItem(session) {
  const { query_id: queryId, excerpt } = session.match;
  return { key: `hit ${session.session_id} ${queryId}`, group: "In conversations", title: session.title || "Untitled", detail: excerpt, run: () => go(session.session_id, queryId) };
}

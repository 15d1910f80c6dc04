/** What is known of the thing that is selected, in the same five tabs for all: the right pane, a sheet on a phone. */

import { html, useEffect, useRef, useState } from "../html.js";
import { keyOf as envelopeKey } from "../core/envelopes.js";
import { TABS, tabsOf, wholeOf } from "../core/selection.js";
import { inspectWhole, selection, tab, turnShown } from "../state/inspection.js";
import { inspectorTab, isInspectorOpen } from "../state/store.js";
import { sheet } from "../parts/sheet.js";
import { ContextTab } from "./inspector/context_tab.js";
import { EngramStory } from "./inspector/engram_story.js";
import { EnvelopeView } from "./inspector/envelope_view.js";
import { ParticipantStory } from "./inspector/participant_story.js";
import { RawTab } from "./inspector/raw_tab.js";
import { SourcesTab } from "./inspector/sources_tab.js";
import { StoryTab } from "./inspector/story_tab.js";
import { TimeTab } from "./inspector/time_tab.js";

await sheet("../style/inspector.css", import.meta.url);

const OF_TURN = { story: StoryTab, time: TimeTab, context: ContextTab, sources: SourcesTab, raw: RawTab };
const OF_OTHERS = { envelope: EnvelopeView, engram: EngramStory, participant: ParticipantStory };

export function Inspector() {
  const pane = useRef(null);
  useEffect(() => pane.current?.querySelector("[role=tab][aria-selected=true]")?.focus({ preventScroll: true }), []);
  const [isTall, grow] = useState(false);
  const shown = selection.value;
  return html`<aside class="inspector" ref=${pane} aria-label="Inspector" data-tall=${isTall}>
    <button type="button" class="sheet-grip" aria-label=${isTall ? "Make the inspector smaller" : "Make the inspector larger"} onClick=${() => grow(!isTall)}><span aria-hidden="true"></span></button>
    <header><${Title} shown=${shown} /><button type="button" class="quiet" onClick=${() => (isInspectorOpen.value = false)}>Close</button></header>
    ${shown ? html`<${Tabs} shown=${shown} /><${Panel} key=${keyOf(shown)} shown=${shown} />` : html`<p class="empty">Ask a question: its details are shown here.</p>`}
  </aside>`;
}

function keyOf({ kind, queryId, callId, engramId, name, envelope }) {
  return [kind, queryId, callId, engramId, name, envelope && envelopeKey(envelope)].join(" ");
}

function Title({ shown }) {
  if (!shown) return html`<h2>Inspector</h2>`;
  const part = wholeOf(shown);
  return html`<h2>${part ? html`<button type="button" class="quiet whole" aria-label="Back to the whole answer" onClick=${inspectWhole}>‹ Answer</button>` : null}<span dir="auto">${titleOf(shown)}</span></h2>`;
}

function titleOf(shown) {
  if (shown.kind === "turn") return turnShown.value?.query ?? "Answer";
  if (shown.kind === "call") return turnShown.value?.tool_calls.find((call) => call.call_id === shown.callId)?.tool ?? "Tool call";
  if (shown.kind === "envelope") return shown.envelope.subject;
  return shown.kind === "engram" ? "A memory" : shown.name;
}

function Tabs({ shown }) {
  const tabs = tabsOf(shown);
  const move = (event) => {
    const to = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!to) return;
    event.preventDefault();
    const next = tabs[(tabs.indexOf(tab.value) + to + tabs.length) % tabs.length];
    inspectorTab.value = next;
    event.currentTarget.querySelector(`[data-tab=${next}]`).focus();
  };
  return html`<div class="tabs" role="tablist" aria-label="Views" onKeyDown=${move}>
    ${tabs.map(
      (name) => html`<button type="button" role="tab" key=${name} id=${`tab-${name}`} data-tab=${name} aria-selected=${tab.value === name} aria-controls="inspector-panel" tabindex=${tab.value === name ? 0 : -1} onClick=${() => (inspectorTab.value = name)}>${TABS[name]}</button>`
    )}
  </div>`;
}

function Panel({ shown }) {
  const name = tab.value;
  const Inside = OF_TURN[name];
  const Other = OF_OTHERS[shown.kind];
  return html`<div class="panel" id="inspector-panel" role="tabpanel" aria-labelledby=${`tab-${name}`} tabindex="0" data-scroll data-tab=${name} key=${name}>
    ${Other ? html`<${Other} shown=${shown} isRaw=${name === "raw"} />` : html`<${Inside} shown=${shown} turn=${turnShown.value} />`}
  </div>`;
}

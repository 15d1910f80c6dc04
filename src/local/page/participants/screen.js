/** Each participant's own panel: what it does, and its settings; the critic's has its judgements, too. */

import { html, useState } from "../html.js";
import { groupsOf, lags } from "../core/bus.js";
import { titleOf } from "../core/settings_form.js";
import { figure } from "../core/words.js";
import { Button } from "../parts/field.js";
import { Messages } from "../parts/messages.js";
import { Empty, Loading, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { sheet } from "../parts/sheet.js";
import { Table } from "../parts/table.js";
import { Tabs } from "../parts/tabs.js";
import { SettingsForm } from "../settings/form.js";
import { Waiting } from "../settings/waiting.js";
import { addressOf } from "../state/screens.js";
import { participants } from "../state/store.js";
import { control } from "../state/system.js";
import { ParticipantStory } from "../views/inspector/participant_story.js";
import { Compare } from "./compare.js";
import { Judgements } from "./judgements.js";

await Promise.all([sheet("../settings/settings.css", import.meta.url), sheet("./participants.css", import.meta.url)]);

const TITLES = { activity: "Activity", judgements: "Judgements", compare: "Compare A and B", status: "Status", settings: "Settings" };

/** @param {{path: string[]}} given a name, a tab, and what the tab shows; or nothing for all of them */
export function Screen({ path: [name = "", tab = "", ...rest] }) {
  return name ? html`<${Panel} key=${name} name=${name} tab=${tab} rest=${rest} />` : html`<${All} />`;
}

const COLUMNS = [
  { id: "name", title: "Participant", value: (row) => row.name, show: (row) => html`<a href=${addressOf("participants", row.name)}>${row.name}</a>` },
  { id: "kind", title: "Kind", value: (row) => row.kind },
  { id: "state", title: "State", value: (row) => row.state, show: (row) => html`<span class="dot" data-state=${row.state} aria-hidden="true"></span> ${row.state}${row.detail ? html` <small>${row.detail}</small>` : null}` },
  { id: "lag", title: "Waiting", value: (row) => row.lag, isNumber: true },
  { id: "restarts", title: "Restarts", value: (row) => row.restarts ?? 0, isNumber: true },
];

function All() {
  const all = participants.value;
  const waiting = lags(all.values());
  const rows = groupsOf(all.values()).flatMap((group) => group.rows).map((row) => ({ ...row, lag: waiting.get(row.name) ?? 0 }));
  return html`<${ScreenHead} title="Participants" text="The parts that LoCAL2 is made of. Each has a panel with what it does." />
    ${rows.length ? html`<${Table} label="Participants" columns=${COLUMNS} rows=${rows} keyOf=${(row) => row.name} />` : html`<${Loading} />`}`;
}

function Panel({ name, tab, rest }) {
  const all = participants.value;
  const row = all.get(name);
  const tabs = Object.keys(TITLES).filter((one) => name === "critic" || (one !== "judgements" && one !== "compare"));
  const at = tabs.includes(tab) ? tab : "activity";
  const lag = lags(all.values()).get(name) ?? 0;
  const facts = row ? [row.kind, row.state, row.inflight ? `${figure(row.inflight)} in hand` : "", lag ? `${figure(lag)} waiting` : "", row.restarts ? `restarted ${figure(row.restarts)} ×` : ""].filter(Boolean).join(" · ") : "";
  return html`<p class="crumbs"><a href=${addressOf("participants")}>‹ All participants</a></p>
    <${ScreenHead} title=${name} text=${facts}>${row ? html`<${Acts} row=${row} />` : null}</${ScreenHead}>
    ${!all.size ? html`<${Loading} />` : !row ? html`<${Empty}>There is no participant of this name. It may not be switched on in <code>system.yaml</code>.</${Empty}>` : null}
    <${Tabs} screen="participants" path=${[name]} at=${at} tabs=${tabs.map((id) => ({ id, title: TITLES[id] }))} label="Parts of this panel" />
    ${at === "activity" ? html`<${Done} name=${name} row=${row} />` : at === "judgements" ? html`<${Judgements} row=${row} />` : at === "compare" ? html`<${Compare} query=${rest[0] ?? ""} />` : at === "status" ? html`<div><div class="status-story"><${ParticipantStory} shown=${{ name }} isRaw=${false} /></div></div>` : html`<${Settings} name=${name} chosen=${rest[0] ?? ""} />`}`;
}

const LOSS = {
  journal: "Nothing is recorded or answered until it is started again.",
  generator: "Questions wait until it is started again; an answer under way begins again then.",
  critic: "Answers are not graded until it is started again; they wait for it.",
  memory: "Nothing is remembered or recalled until it is started again; what happens meanwhile waits for it.",
};

/** The proxy carries everything, so it is not stopped from here. */
function Acts({ row: { name, kind, state } }) {
  const [isAsked, ask] = useState(false);
  if (kind === "proxy") return html`<small>always on</small>`;
  if (state === "stopped" || state === "failed") return html`<${Button} kind="accent" act=${() => control("start", name)}>Start</${Button}>`;
  if (!isAsked) return html`<${Button} act=${() => control("restart", name)}>Restart</${Button}><button type="button" class="edged" onClick=${() => ask(true)}>Stop…</button>`;
  return html`<div class="really" role="group" aria-label=${`Stop ${name}?`}><p>Stop ${name}? ${LOSS[name] ?? "What it does is missing until it is started again."}</p>
    <button type="button" class="edged" ref=${(node) => node?.focus()} onClick=${() => ask(false)}>Keep it running</button> <${Button} kind="edged bad" act=${() => control("stop", name).then(() => ask(false))}>Stop ${name}</${Button}></div>`;
}

const MOST_TOOLS = 16; // the journal takes 32 subjects

/** Tools are found by their subjects, which is quick however long the journal is. */
function Done({ name, row }) {
  const asked = Object.keys(row?.subscriptions ?? {}).filter((subject) => subject.startsWith("tool.request."));
  const kind = row?.kind === "tool" && asked.length && asked.length <= MOST_TOOLS ? asked.flatMap((one) => [one, one.replace("request", "result")]).sort().join(" ") : "";
  if (!participants.value.size) return null;
  return html`<p class="help">Requests to it and everything that it sent. New messages are added as they arrive; press one to read all of it.</p>
    <${Messages} wanted=${{ kind, session: "", participant: kind ? "" : name }} label=${`What ${name} did`} empty="It has not done anything yet that is on record." />`;
}

/** The files of settings that it reads, its own first; one of them is shown. @param {{name: string, chosen: string}} given */
function Settings({ name, chosen }) {
  const { data, trouble, reload } = useResource("/settings");
  const read = (data?.settings ?? []).filter((one) => (one.name === name || one.read_by?.includes(name)) && Object.keys(one.keys ?? { any: 1 }).length).map((one) => one.name).sort((one, other) => Number(other === name) - Number(one === name));
  const at = read.includes(chosen) ? chosen : read[0];
  return html`${trouble ? html`<${Trouble} text="The settings could not be read." failure=${trouble} act=${reload} />` : null}
    ${read.length > 1 ? html`<p class="help">It reads several files: ${read.map((one, index) => html`${index ? " · " : ""}<a key=${one} href=${addressOf("participants", name, "settings", one)} aria-current=${one === at ? "page" : null}>${titleOf(one)}</a>`)}</p>` : null}
    ${at ? html`<div><div class="section"><${Waiting} /><${SettingsForm} key=${at} name=${at} at="" changed=${reload} /></div></div>` : data ? html`<${Empty}>It has no settings.</${Empty}>` : trouble ? null : html`<${Loading} />`}`;
}

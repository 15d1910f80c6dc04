/** What is remembered: exchanges, facts and notes, MEMORY.md and SOUL.md; each is a tab with an address. */

import { html, useState } from "../html.js";
import { Button } from "../parts/field.js";
import { Trouble } from "../parts/notes.js";
import { ScreenHead } from "../parts/screen_head.js";
import { sheet } from "../parts/sheet.js";
import { Tabs } from "../parts/tabs.js";
import { send } from "../net/api.js";
import { saveFile } from "../state/listing.js";
import { me } from "../state/store.js";
import { OneExchange } from "./exchange.js";
import { FactTable } from "./fact_table.js";
import { ExchangeList } from "./list.js";
import { MemoryFile } from "./memory_file.js";
import { NoteTable } from "./note_table.js";
import { Soul } from "./soul.js";

await sheet("./memory.css", import.meta.url);

const TABS = [
  { id: "engrams", title: "Exchanges" },
  { id: "facts", title: "Facts" },
  { id: "notes", title: "Notes" },
  { id: "file", title: "MEMORY.md" },
  { id: "soul", title: "SOUL.md", isOwners: true },
];
const INSIDE = { engrams: ExchangeList, facts: FactTable, notes: NoteTable, file: MemoryFile, soul: Soul };

/** @param {{path: string[]}} given the tab, and the id of an exchange that is shown alone */
export function Screen({ path: [name = "engrams", id = ""] }) {
  const [failure, fail] = useState(null);
  const tabs = TABS.filter((one) => !one.isOwners || me.value.owner);
  const at = tabs.find((one) => one.id === name)?.id ?? "engrams";
  const Inside = INSIDE[at];
  const save = () =>
    send("GET", "/memory/export")
      .then((response) => response.blob())
      .then((content) => (fail(null), saveFile(content, "memory.ndjson")), fail);
  return html`<${ScreenHead} title="Memory" text="What LoCAL2 remembers of your conversations and knows about you. Incognito conversations are never here."><${Button} act=${save}>Export all</${Button}></${ScreenHead}>
    ${failure ? html`<${Trouble} text="The memory was not exported." failure=${failure} act=${() => void save()} />` : null}
    <${Tabs} screen="memory" at=${at} tabs=${tabs} />
    ${at === "engrams" && id ? html`<${OneExchange} key=${id} id=${id} />` : html`<${Inside} key=${at} />`}`;
}

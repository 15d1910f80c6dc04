/** The system itself: its models and processes, what was used, backups, the log, the doctor, and who may use it. */

import { html } from "../html.js";
import { ScreenHead } from "../parts/screen_head.js";
import { sheet } from "../parts/sheet.js";
import { Tabs } from "../parts/tabs.js";
import { Backups } from "./backups.js";
import { Doctor } from "./doctor.js";
import { Log } from "./log.js";
import { Models } from "./models.js";
import { Participants } from "./participants.js";
import { Usage } from "./usage.js";
import { Users } from "./users.js";

await Promise.all([sheet("../settings/settings.css", import.meta.url), sheet("./system.css", import.meta.url)]);

const TABS = [
  { id: "models", title: "Models", text: "The models that are here, and what each of them does.", Part: Models },
  { id: "participants", title: "Participants", text: "The processes that LoCAL2 is made of. One that fails is restarted automatically.", Part: Participants },
  { id: "usage", title: "Usage", text: "What answers have cost: tokens, seconds and, where models have prices, money.", Part: Usage },
  { id: "backups", title: "Backups", text: "Copies of everything that LoCAL2 has stored.", Part: Backups },
  { id: "log", title: "Log", text: "What the processes say of their work, the latest last.", Part: Log },
  { id: "doctor", title: "Doctor", text: "Checks of this installation, and what to do about each problem.", Part: Doctor },
  { id: "users", title: "Users", text: "Who else may use LoCAL2, and how much. Each user sees only their own conversations and memories.", Part: Users },
];

/** @param {{path: string[]}} given */
export function Screen({ path }) {
  const { id, text, Part } = TABS.find((one) => one.id === path[0]) ?? TABS[0];
  return html`<${ScreenHead} title="System" text=${text} />
    <${Tabs} screen="system" at=${id} tabs=${TABS} />
    <div class="system-part"><${Part} /></div>`;
}

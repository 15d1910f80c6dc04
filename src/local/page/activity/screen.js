/** What happened, past questions, the messages on record, the bus as it is now, and what could not be delivered. */

import { html } from "../html.js";
import { sheet } from "../parts/sheet.js";
import { ScreenHead } from "../parts/screen_head.js";
import { Tabs } from "../parts/tabs.js";
import { me } from "../state/store.js";
import { Bus } from "./bus.js";
import { DeadLetters } from "./dead.js";
import { Happened } from "./happened.js";
import { Questions } from "./questions.js";
import { Recorded } from "./recorded.js";

await sheet("./activity.css", import.meta.url);

const TABS = [
  { id: "happened", title: "What happened", Inside: Happened, isOwners: false },
  { id: "questions", title: "Questions", Inside: Questions, isOwners: false },
  { id: "messages", title: "Messages", Inside: Recorded, isOwners: true },
  { id: "bus", title: "Bus", Inside: Bus, isOwners: true },
  { id: "dead", title: "Dead letters", Inside: DeadLetters, isOwners: true },
];

/** @param {{path: string[]}} given */
export function Screen({ path }) {
  const tabs = TABS.filter((one) => !one.isOwners || me.value.owner);
  const { id, Inside } = tabs.find((one) => one.id === path[0]) ?? tabs[0];
  return html`<${ScreenHead} title="Activity" text="What LoCAL2 has done, and the messages by which its parts work together." />
    ${tabs.length > 1 ? html`<${Tabs} screen="activity" at=${id} tabs=${tabs} />` : null}<${Inside} key=${id} />`;
}

/** What happened and what it cost, past questions, changes of files, the messages on record, the bus as it is now, and dead letters. */

import { html } from "../html.js";
import { sheet } from "../parts/sheet.js";
import { ScreenHead } from "../parts/screen_head.js";
import { Tabs } from "../parts/tabs.js";
import { me } from "../state/store.js";
import { OwnUsage } from "../system/usage.js";
import { Bus } from "./bus.js";
import { FileChanges } from "./changes.js";
import { DeadLetters } from "./dead.js";
import { Happened } from "./happened.js";
import { Questions } from "./questions.js";
import { Recorded } from "./recorded.js";
import { Subjects } from "./subjects.js";

await sheet("./activity.css", import.meta.url);

const TABS = [
  { id: "happened", title: "What happened", Inside: Happened, isFor: () => true },
  { id: "questions", title: "Questions", Inside: Questions, isFor: () => true },
  { id: "usage", title: "Your usage", Inside: OwnUsage, isFor: (isOwner) => !isOwner },
  { id: "changes", title: "File changes", Inside: FileChanges, isFor: Boolean },
  { id: "messages", title: "Messages", Inside: Recorded, isFor: Boolean },
  { id: "bus", title: "Bus", Inside: Bus, isFor: Boolean },
  { id: "subjects", title: "Subjects", Inside: Subjects, isFor: Boolean },
  { id: "dead", title: "Dead letters", Inside: DeadLetters, isFor: Boolean },
];

/** @param {{path: string[]}} given */
export function Screen({ path }) {
  const tabs = TABS.filter((one) => one.isFor(me.value.owner));
  const { id, Inside } = tabs.find((one) => one.id === path[0]) ?? tabs[0];
  return html`<${ScreenHead} title="Activity" text="What LoCAL2 has done, and the messages by which its parts work together." />
    <${Tabs} screen="activity" at=${id} tabs=${tabs} /><${Inside} key=${id} />`;
}

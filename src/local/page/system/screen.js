/** The system itself: who takes part, and the models. */

import { html } from "../html.js";
import { ScreenHead } from "../parts/screen_head.js";
import { Tabs } from "../parts/tabs.js";
import { Models } from "./models.js";
import { Participants } from "./participants.js";

const TABS = [{ id: "participants", title: "Participants" }, { id: "models", title: "Models" }];

/** @param {{path: string[]}} given */
export function Screen({ path }) {
  const at = TABS.find(({ id }) => id === path[0])?.id ?? "participants";
  return html`<${ScreenHead} title="System" text="The processes that LoCAL2 is made of, and the models that answer." />
    <${Tabs} screen="system" at=${at} tabs=${TABS} />
    ${at === "models" ? html`<${Models} />` : html`<${Participants} />`}`;
}

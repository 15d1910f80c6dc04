/** The settings: those of this page, and one section for each file. */

import { html } from "../html.js";
import { Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { addressOf } from "../state/screens.js";
import { me } from "../state/store.js";
import { SettingsForm } from "./form.js";
import { ThisPage } from "./this_page.js";

/** @param {{path: string[]}} given the name of a section, or nothing */
export function Screen({ path: [name = ""] }) {
  const isOwner = me.value.owner;
  const { data, trouble, reload } = useResource(isOwner ? "/settings" : null);
  const names = (data?.settings ?? []).map((one) => one.name).sort();
  return html`<${ScreenHead} title="Settings" text="How this page looks, and how each part of LoCAL2 works." />
    <div class="sections" data-at=${name ? "section" : "list"}>
      <nav aria-label="Sections"><ul>
        <${Section} name="" title="This page" at=${name} />
        ${names.map((one) => html`<${Section} key=${one} name=${one} title=${one.replaceAll("_", " ")} at=${name} />`)}
      </ul>${trouble ? html`<${Trouble} text="The other sections could not be read." failure=${trouble} act=${reload} />` : null}</nav>
      <div class="section"><a class="back" href=${addressOf("settings")}>‹ All settings</a>
        ${!name ? html`<${ThisPage} />` : isOwner ? html`<${SettingsForm} key=${name} name=${name} />` : html`<${Trouble} text="These settings are the owner's alone." />`}</div>
    </div>`;
}

function Section({ name, title, at }) {
  return html`<li><a href=${name ? addressOf("settings", name) : addressOf("settings")} aria-current=${name === at ? "page" : null}>${title}</a></li>`;
}

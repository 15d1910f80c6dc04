/** The settings: those of this page, one section for each file, and the secrets that they name. */

import { html, useState } from "../html.js";
import { ABOUT, foundSettings, titleOf } from "../core/settings_form.js";
import { Empty, Trouble } from "../parts/notes.js";
import { useResource } from "../parts/resource.js";
import { ScreenHead } from "../parts/screen_head.js";
import { sheet } from "../parts/sheet.js";
import { addressOf } from "../state/screens.js";
import { me } from "../state/store.js";
import { SettingsForm } from "./form.js";
import { Secrets } from "./secrets.js";
import { ThisPage } from "./this_page.js";
import { Waiting } from "./waiting.js";

await sheet("./settings.css", import.meta.url);

/** @param {{path: string[]}} given the name of a section and of a key, or nothing */
export function Screen({ path: [name = "", key = ""] }) {
  const isOwner = me.value.owner;
  const { data, trouble, reload } = useResource(isOwner ? "/settings" : null);
  const [typed, type] = useState("");
  const listing = (data?.settings ?? []).filter((one) => Object.keys(one.keys ?? { any: 1 }).length);
  const found = typed.trim() ? foundSettings(listing, typed) : null;
  const shown = found ? html`<${Found} found=${found} clear=${() => type("")} />` : html`<a class="back" href=${addressOf("settings")}>‹ All settings</a>
    ${isOwner ? html`<${Waiting} />` : null}${section()}`;
  function section() {
    if (!name) return html`<${ThisPage} />`;
    if (!isOwner) return html`<${Trouble} text="These settings are the owner's alone." />`;
    return name === "secrets" ? html`<${Secrets} listing=${listing} />` : html`<${SettingsForm} key=${name} name=${name} at=${key} changed=${reload} />`;
  }
  return html`<${ScreenHead} title="Settings" text="How this page looks, and how each part of LoCAL2 works." />
    ${isOwner ? html`<div class="find"><label class="unseen" for="find-setting">Find a setting</label><input type="search" id="find-setting" placeholder="Find a setting" autocomplete="off" value=${typed} onInput=${(event) => type(event.target.value)} /></div>` : null}
    <div class="sections" data-at=${name || found ? "section" : "list"}>
      <nav aria-label="Sections"><ul>
        <${Section} name="" title="This page" at=${name} />
        ${isOwner ? html`<${Section} name="secrets" title="Secrets" at=${name} />` : null}
        ${listing.map((one) => html`<${Section} key=${one.name} name=${one.name} title=${titleOf(one.name)} at=${name} changed=${one.changed?.length ?? 0} />`)}
      </ul>${trouble ? html`<${Trouble} text="The other sections could not be read." failure=${trouble} act=${reload} />` : null}</nav>
      <div class="section">${shown}</div>
    </div>`;
}

function Section({ name, title, at, changed = 0 }) {
  return html`<li><a href=${name ? addressOf("settings", name) : addressOf("settings")} aria-current=${name === at ? "page" : null}>${title}${changed ? html` <small title="changed by you">${changed}<span class="unseen"> changed</span></small>` : null}${ABOUT[name] ? html`<span class="about">${ABOUT[name]}</span>` : null}</a></li>`;
}

function Found({ found, clear }) {
  if (!found.length) return html`<${Empty}>No setting has these words.</${Empty}>`;
  return html`<h2>Found</h2><ul class="found-settings">${found.map((one) => html`<li key=${`${one.section} ${one.name}`}><a href=${addressOf("settings", one.section, one.name)} onClick=${clear}><b>${one.title}</b> <small>${titleOf(one.section)}</small></a><p>${one.text}</p></li>`)}</ul>`;
}

/** The screen of the address, fetched when it is first shown. */

import { html, useEffect, useLayoutEffect, useState } from "../html.js";
import { screenOf } from "../screens.js";
import { Loading, Trouble } from "../parts/notes.js";
import { ScreenHead } from "../parts/screen_head.js";
import { sheet } from "../parts/sheet.js";
import { arrive } from "../state/actions.js";
import { addressOf, hasScreen } from "../state/screens.js";
import { path, screen } from "../state/store.js";
import { UNFETCHED } from "./lazy.js";

/** What the screens share; a screen's own style comes behind it. */
const STYLE = ["../style/inspector.css", "../style/screens.css"];
/** What was fetched, by id. */
const known = new Map();

export function ShownScreen() {
  const id = screen.value;
  return html`<div class="screen" id="screen" data-screen=${id}>${hasScreen(id) ? html`<${Fetched} key=${id} place=${screenOf(id)} />` : html`<${Unknown} id=${id} />`}</div>`;
}

function Fetched({ place }) {
  const [Inside, put] = useState(() => known.get(place.id) ?? null);
  const [failure, fail] = useState(null);
  const fetch = async () => {
    try {
      const style = Promise.all(STYLE.map((file) => sheet(file, import.meta.url)));
      const [{ Screen }] = await Promise.all([place.load(), style]);
      known.set(place.id, Screen);
      fail(null);
      put(() => Screen);
    } catch {
      fail(UNFETCHED);
    }
  };
  useEffect(() => void (Inside || fetch()), []);
  useLayoutEffect(() => void ((Inside || failure) && arrive()), [Inside, failure]);
  if (Inside) return html`<${Inside} path=${path.value} />`;
  return html`<${ScreenHead} title=${place.title} />${failure ? html`<${Trouble} text="This screen could not be loaded." failure=${failure} act=${fetch} />` : html`<${Loading} />`}`;
}

/** An address that leads nowhere, or to a screen that is the owner's alone. */
function Unknown({ id }) {
  useLayoutEffect(arrive, [id]);
  const isOwners = Boolean(screenOf(id));
  return html`<${ScreenHead} title=${isOwners ? "For the owner" : "No such page"} text=${isOwners ? "This screen is the owner's alone." : "The address leads nowhere. It may be from another version of LoCAL2."} />
    <p><a href=${addressOf("chat")}>Open Chat</a></p>`;
}

/** The whole page: the rail, the conversations, the screen, the inspector, and what opens over them. */

import { html, useEffect, useLayoutEffect } from "../html.js";
import { currentId, dialog, isInspectorOpen, isRailOpen, screen, spoken, tell } from "../state/store.js";
import { arrive, settle } from "../state/actions.js";
import { isRefused } from "../net/token.js";
import { Bars } from "./bars.js";
import { lazy, UNFETCHED } from "./lazy.js";
import { Places } from "./places.js";
import { Rail } from "./rail.js";
import { ShownScreen } from "./shown_screen.js";
import { Talk } from "./talk.js";
import { TokenForm } from "./token_form.js";

const Inspector = lazy(() => import("./inspector.js").then((file) => file.Inspector), () => currentId.value !== null);
const Dialogs = lazy(() => import("./dialogs.js").then((file) => file.Dialogs), () => true, NoDialog);

export function App() {
  const isChat = screen.value === "chat";
  useLayoutEffect(() => void (isChat && arrive()), [isChat]);
  useEffect(() => void (isChat && settle()), [isChat]);
  if (isRefused.value) return html`<${TokenForm} />`;
  return html`
    <a class="skip" href=${isChat ? "#question" : "#screen"} onClick=${toWork}>${isChat ? "Skip to your message" : "Skip to the screen"}</a>
    <div class="app" data-screen=${isChat ? "chat" : "other"} data-rail=${isRailOpen.value ? "open" : "closed"} data-inspector=${isInspectorOpen.value ? "open" : "closed"}>
      <${Places} />
      <${Rail} />
      <main class="talk"><${Bars} />${isChat ? html`<${Talk} />` : html`<${ShownScreen} />`}</main>
      ${isInspectorOpen.value ? html`<${Inspector} />` : null}
    </div>
    <div class="unseen" role="status" aria-live="polite" data-spoken>${spoken.value}</div>
    ${dialog.value ? html`<${Dialogs} key=${dialog.value.kind} />` : null}
  `;
}

function NoDialog() {
  useEffect(() => {
    dialog.value = null; // so that the next try is one
    tell(UNFETCHED);
  }, []);
  return null;
}

function toWork(event) {
  event.preventDefault();
  /** @type {HTMLElement | null} */
  const target = document.querySelector("#question, main h1");
  target?.focus();
}

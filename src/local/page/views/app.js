/** The whole page: the rail, the conversation, the inspector, and what opens over them. */

import { html, useEffect } from "../html.js";
import { currentId, dialog, isInspectorOpen, isRailOpen, spoken, tell } from "../state/store.js";
import { isRefused } from "../net/token.js";
import { Bars } from "./bars.js";
import { lazy, UNFETCHED } from "./lazy.js";
import { Rail } from "./rail.js";
import { Talk } from "./talk.js";
import { TokenForm } from "./token_form.js";

const Inspector = lazy(() => import("./inspector.js").then((file) => file.Inspector), () => currentId.value !== null);
const Dialogs = lazy(() => import("./dialogs.js").then((file) => file.Dialogs), () => true, NoDialog);

export function App() {
  if (isRefused.value) return html`<${TokenForm} />`;
  return html`
    <a class="skip" href="#question" onClick=${toComposer}>Skip to your message</a>
    <div class="app" data-rail=${isRailOpen.value ? "open" : "closed"} data-inspector=${isInspectorOpen.value ? "open" : "closed"}>
      <${Rail} />
      <main class="talk"><${Bars} /><${Talk} /></main>
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

function toComposer(event) {
  event.preventDefault();
  document.getElementById("question")?.focus();
}

/** Starts the page. */

import { html, render } from "./html.js";
import { readAddress } from "./state/actions.js";
import { keepFocus } from "./state/focus.js";
import { listen } from "./state/following.js";
import { followTraces } from "./state/inspection.js";
import { resume } from "./state/outbox.js";
import { listenToKeys } from "./state/keys.js";
import { colourBrowser } from "./state/look.js";
import { App } from "./views/app.js";

const isDebug = new URLSearchParams(location.search).has("debug");
if (isDebug) await import("./vendor/preact_debug.js");

colourBrowser();
readAddress();
addEventListener("hashchange", readAddress);
const page = document.getElementById("page");
render(html`<${App} />`, page);
page.dataset.state = "ready";
resume();
listenToKeys();
keepFocus();
followTraces();
listen();
if (!isDebug) void import("./net/installed.js").then(({ keepPage }) => keepPage(), () => {});

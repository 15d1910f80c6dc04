/** A block of code: its language, a button to copy it, and colours once it is finished and they are loaded. */

import { html, useEffect, useRef, useState } from "../html.js";
import { CopyButton } from "../views/copy_button.js";
import { lazy } from "../views/lazy.js";
import { coloured, languageOf } from "./code_colours.js";

/** `live` while more of it may come: it has no colours then. */
export function CodeBlock({ code, language, live }) {
  const name = language.split(/[\s{,:]/, 1)[0];
  const spans = useColours(code, name, live);
  const [isShown, show] = useState(false);
  const Inside = live || code.length > LONGEST ? null : insideOf(name.toLowerCase(), code);
  return html`<figure class="code" data-language=${name || "text"}>
    <figcaption><span>${name || "text"}</span><span class="push"></span>${Inside ? html`<button type="button" class="quiet" aria-expanded=${isShown} onClick=${() => show(!isShown)}>${isShown ? "Close the preview" : "Preview"}</button>` : null}<${CopyButton} text=${code} what="code" /></figcaption>
    <pre tabindex="0" dir="ltr"><code>${spans
      ? spans.map(([text, kind]) => (kind ? html`<span class=${`c-${kind}`}>${text}</span>` : text))
      : code}</code></pre>
    ${Inside && isShown ? html`<${Inside} key=${code} code=${code} />` : null}
  </figure>`;
}

const Preview = lazy(() => import("../views/preview.js").then((file) => file.Preview), () => false);

const Diagram = lazy(() => import("../views/diagram.js").then((file) => file.Diagram), () => false);

const LONGEST = 500_000; // characters of what is drawn

/** What draws a language, null where nothing does. */
function insideOf(language, code) {
  if (language === "mermaid") return Diagram;
  return language === "html" || language === "svg" || (language === "xml" && /^\s*<svg[\s>]/.test(code)) ? Preview : null;
}

function useColours(code, name, live) {
  const [found, keep] = useState(null);
  const wanted = useRef("");
  useEffect(() => {
    if (live || !languageOf(name)) return;
    wanted.current = code;
    void coloured(code, name).then((spans) => spans && wanted.current === code && keep({ code, spans }));
  }, [code, name, live]);
  return found && found.code === code ? found.spans : null;
}

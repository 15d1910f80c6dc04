/** A block of code: its language, a button to copy it, and colours once it is finished and they are loaded. */

import { html, useEffect, useRef, useState } from "../html.js";
import { CopyButton } from "../views/copy_button.js";
import { coloured, languageOf } from "./code_colours.js";

/** `live` while more of it may come: it has no colours then. */
export function CodeBlock({ code, language, live }) {
  const name = language.split(/[\s{,:]/, 1)[0];
  const spans = useColours(code, name, live);
  return html`<figure class="code" data-language=${name || "text"}>
    <figcaption><span>${name || "text"}</span><${CopyButton} text=${code} what="code" /></figcaption>
    <pre tabindex="0" dir="ltr"><code>${spans
      ? spans.map(([text, kind]) => (kind ? html`<span class=${`c-${kind}`}>${text}</span>` : text))
      : code}</code></pre>
  </figure>`;
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

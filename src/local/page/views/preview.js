/** HTML or SVG as it looks, in a frame without an origin, network and scripts; see `preview.html`. */

import { html, useEffect, useRef } from "../html.js";

const FRAME = new URL("../preview.html", import.meta.url).pathname;

export function Preview({ code }) {
  const frame = useRef(null);
  useEffect(() => {
    const hear = ({ source, data }) => {
      const inside = frame.current?.contentWindow;
      if (inside && source === inside && data === "ready") inside.postMessage(code, "*"); // it has no origin to name
    };
    addEventListener("message", hear);
    return () => removeEventListener("message", hear);
  }, [code]);
  const hasScripts = /<script|\son\w+\s*=/i.test(code);
  return html`${hasScripts ? html`<p class="preview-note">Its scripts do not run here: they could contact other computers.</p>` : null}<iframe ref=${frame} class="preview" title="Preview of the code above" sandbox="allow-scripts" referrerpolicy="no-referrer" src=${FRAME}></iframe>`;
}

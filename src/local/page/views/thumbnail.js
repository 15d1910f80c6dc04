/** A small picture of an attached picture; a press shows it whole. */

import { html, useEffect, useState } from "../html.js";
import { send } from "../net/api.js";

/** `id` is the attachment's. What cannot be loaded leaves only its name. */
export function Thumbnail({ id, name }) {
  const [address, put] = useState("");
  const [isWhole, open] = useState(false);
  useEffect(() => {
    let made = "";
    const stop = new AbortController();
    send("GET", `/attachments/${id}/content`, undefined, { signal: stop.signal })
      .then((response) => response.blob())
      .then((picture) => stop.signal.aborted || put((made = URL.createObjectURL(picture))))
      .catch(() => {}); // its name is there
    return () => (stop.abort(), made && URL.revokeObjectURL(made));
  }, [id]);
  if (!address) return null;
  return html`<button type="button" class="thumbnail" data-whole=${isWhole} aria-pressed=${isWhole} aria-label=${`${isWhole ? "Smaller" : "Larger"}: ${name}`} onClick=${() => open(!isWhole)}><img src=${address} alt="" onError=${() => put("")} /></button>`;
}

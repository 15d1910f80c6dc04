/** A picture of another host: not loaded until its reader asks for it, and then by LoCAL2. */

import { html, useEffect, useState } from "../html.js";
import { send } from "../net/api.js";

/** @param {{address: string, host: string, text: string}} given */
export function RemotePicture({ address, host, text }) {
  const [shown, put] = useState({ state: "away" });
  useEffect(() => () => shown.source && URL.revokeObjectURL(shown.source), [shown.source]);
  const load = async () => {
    put({ state: "loading" });
    try {
      const picture = await (await send("POST", "/pictures", { url: address })).blob();
      put({ state: "there", source: URL.createObjectURL(picture) });
    } catch (failure) {
      put({ state: "failed", trouble: failure.message });
    }
  };
  if (shown.source) return html`<img class="loaded" src=${shown.source} alt=${text || `Picture from ${host}`} title=${address} />`;
  return html`<span class="picture" data-state=${shown.state}><b>${text || "Picture"}</b> <small>${shown.trouble ?? `image from ${host} not loaded${carried(address)}`}</small>
    <button type="button" class="quiet" title=${address} disabled=${shown.state === "loading"} onClick=${() => void load()}>${shown.state === "loading" ? "Loading…" : `Load it from ${host}`}</button></span>`;
}

/** What the address tells the other host beside its name. */
function carried(address) {
  const { search } = new URL(address);
  return search.length > 1 ? `; its address carries ${search.length - 1} more characters to that host` : "";
}

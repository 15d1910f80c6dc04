/** A view whose file is fetched when the page has time, and at the latest when it is first shown. */

import { html, useEffect, useState } from "../html.js";

/** @param {() => Promise<any>} load gives the component */
export function lazy(load) {
  let known = null;
  const fetched = () => load().then((component) => (known = component));
  (globalThis.requestIdleCallback ?? setTimeout)(() => void fetched().catch(() => {})); // it is tried again when it is shown
  return function Lazy(props) {
    const [Inside, put] = useState(() => known);
    useEffect(() => {
      if (!Inside) fetched().then((component) => put(() => component), () => put(() => Missing));
    }, []);
    return Inside ? html`<${Inside} ...${props} />` : null;
  };
}

function Missing() {
  return html`<p class="trouble" role="status">This part of the page could not be fetched: LoCAL2 does not answer.</p>`;
}
